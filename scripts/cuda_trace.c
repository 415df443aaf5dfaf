// Writes what a program does on a card, by CUPTI: kernels, copies, and calls of the driver of more than 50 µs.
//
//   cuda=/usr/local/cuda; cupti=$cuda/extras/CUPTI
//   cc -shared -fPIC -I$cuda/include -I$cupti/include scripts/cuda_trace.c -o cuda_trace.so -L$cupti/lib64 -lcupti
//   TRACE=trace.txt CUDA_INJECTION64_PATH=$PWD/cuda_trace.so kingpost solve poisson --device cuda
//   scripts/cuda_trace.py trace.txt
//
// A line each: its kind (K, C, M: kernel, copy, memory that is set; A: a call of the driver), its start and its duration in
// milliseconds, its name and details. Records are those of CUDA 13.
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out;
static uint64_t base;

static double ms(uint64_t from, uint64_t to) { return ((double)to - (double)from) / 1e6; }

static void CUPTIAPI lend(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 16 << 20;
    *buffer = aligned_alloc(8, *size);
    *most = 0;
}

static void write_call(CUpti_ActivityAPI *call) {
    const char *name = "?";
    if (ms(call->start, call->end) > 0.05) {
        cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, call->cbid, &name);
        fprintf(out, "A %.4f %.4f %s\n", ms(base, call->start), ms(call->start, call->end), name);
    }
}

static void write_record(CUpti_Activity *record) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        CUpti_ActivityKernel10 *of = (CUpti_ActivityKernel10 *)record;
        fprintf(out, "K %.4f %.4f %s registers=%d groups=%d items=%d\n", ms(base, of->start), ms(of->start, of->end),
                of->name, of->registersPerThread, of->gridX * of->gridY, of->blockX * of->blockY);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        CUpti_ActivityMemcpy6 *of = (CUpti_ActivityMemcpy6 *)record;
        fprintf(out, "C %.4f %.4f copy%d bytes=%llu\n", ms(base, of->start), ms(of->start, of->end), (int)of->copyKind,
                (unsigned long long)of->bytes);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        CUpti_ActivityMemset4 *of = (CUpti_ActivityMemset4 *)record;
        fprintf(out, "M %.4f %.4f memset bytes=%llu\n", ms(base, of->start), ms(of->start, of->end),
                (unsigned long long)of->bytes);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
        write_call((CUpti_ActivityAPI *)record);
    }
}

static void CUPTIAPI take(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        write_record(record);
    }
    free(buffer);
}

static void finish(void) {
    cuptiActivityFlushAll(1);
    fclose(out);
}

int InitializeInjection(void) {
    const char *file = getenv("TRACE");
    out = fopen(file ? file : "trace.txt", "w");
    if (!out) {
        return 0;
    }
    cuptiGetTimestamp(&base);
    cuptiActivityRegisterCallbacks(lend, take);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
    atexit(finish);
    return 1;
}
