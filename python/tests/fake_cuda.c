/* A driver of CUDA without a card, for tests: memory is the host's, and launches, waits, graphs and copies are told
 * to a function of the test, in order; of a copy the bytes instead of a stream. Streams and contexts are numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int result;
/* What happened: the name of a kernel or of an operation, the stream, the addresses of a kernel's arguments. */
typedef void (*listener)(const char *what, uint64_t stream, void **arguments);

struct graph {
    int nodes;
};

static listener heard;
static uint64_t streams = 100, capturing;
static struct graph *captured;

void fake_listen(listener function) { heard = function; }

static result tell(const char *what, uint64_t stream, void **arguments)
{
    if (heard) heard(what, stream, arguments);
    return 0;
}

/* NVRTC calls it without looking whether it is there. */
result cuGetExportTable(const void **table, const void *id) { (void)id; *table = NULL; return 500; }
result cuInit(unsigned flags) { (void)flags; return 0; }
result cuDriverGetVersion(int *version) { *version = 13000; return 0; }
result cuDeviceGetCount(int *count) { *count = 1; return 0; }
result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal; }
result cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)1 << 34; return 0; }
result cuDeviceGetUuid_v2(char *uuid, int device) { (void)device; memset(uuid, 7, 16); return 0; }
result cuDeviceGetName(char *name, int length, int device)
{
    (void)device;
    strncpy(name, "no card", (size_t)length);
    return 0;
}
result cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    switch (attribute) {
    case 75: *value = 9; break; /* the compute capability, 9.0 */
    case 76: *value = 0; break;
    case 16: *value = 132; break; /* multiprocessors */
    case 97: *value = 232448; break; /* bytes of shared memory */
    case 13: *value = 1980000; break; /* kHz */
    case 1: case 2: case 3: *value = 1024; break; /* threads of a block */
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break; /* blocks of a grid */
    default: *value = 65535;
    }
    return 0;
}
result cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = (void *)1; return 0; }
result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
result cuCtxSetCurrent(void *context) { (void)context; return 0; }
result cuCtxSynchronize(void) { return tell("wait for all", 0, NULL); }

result cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    *address = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *address ? 0 : 2;
}
result cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return 0; }
result cuMemHostAlloc(void **address, size_t bytes, unsigned flags) { (void)flags; *address = malloc(bytes); return 0; }
result cuMemFreeHost(void *address) { free(address); return 0; }
result cuMemsetD8_v2(uint64_t to, unsigned char byte, size_t bytes) { memset((void *)(uintptr_t)to, byte, bytes); return 0; }
result cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return tell("to the card", bytes, NULL);
}
result cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return tell("to the host", bytes, NULL);
}
result cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return 0;
}
result cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    (void)attribute; (void)address;
    *(int *)value = 0; /* the ordinal of the card */
    return 0;
}

result cuStreamCreate(uint64_t *stream, unsigned flags) { (void)flags; *stream = ++streams; return 0; }
result cuStreamDestroy_v2(uint64_t stream) { (void)stream; return 0; }
result cuStreamSynchronize(uint64_t stream) { return tell("wait", stream, NULL); }
result cuStreamWaitEvent(uint64_t stream, void *event, unsigned flags) { (void)event; (void)flags; return tell("wait for event", stream, NULL); }
result cuEventCreate(void **event, unsigned flags) { (void)flags; *event = (void *)1; return 0; }
result cuEventDestroy_v2(void *event) { (void)event; return 0; }
result cuEventRecord(void *event, uint64_t stream) { (void)event; (void)stream; return 0; }
result cuEventSynchronize(void *event) { (void)event; return 0; }
result cuEventElapsedTime_v2(float *ms, void *start, void *end) { (void)start; (void)end; *ms = 0.001f; return 0; }

result cuModuleLoadData(void **module, const void *image) { (void)image; *module = (void *)1; return 0; }
result cuModuleUnload(void *module) { (void)module; return 0; }
result cuModuleGetFunction(char **function, void *module, const char *name)
{
    (void)module;
    *function = strdup(name); /* a function is its name, for the life of the process */
    return 0;
}
result cuFuncGetAttribute(int *value, int attribute, char *function) { (void)attribute; (void)function; *value = 1024; return 0; }
result cuFuncSetAttribute(char *function, int attribute, int value) { (void)attribute; (void)function; (void)value; return 0; }
result cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, uint64_t stream, void **arguments, void **extra)
{
    (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)shared; (void)extra;
    if (stream && stream == capturing) {
        captured->nodes++;
        return 0;
    }
    return tell(function, stream, arguments);
}

result cuStreamBeginCapture_v2(uint64_t stream, int mode)
{
    (void)mode;
    capturing = stream;
    captured = calloc(1, sizeof *captured);
    return 0;
}
result cuStreamIsCapturing(uint64_t stream, int *status) { *status = stream && stream == capturing; return 0; }
result cuStreamEndCapture(uint64_t stream, struct graph **graph)
{
    (void)stream;
    capturing = 0;
    *graph = captured;
    return 0;
}
result cuGraphInstantiateWithFlags(struct graph **exec, struct graph *graph, unsigned long long flags)
{
    (void)flags;
    *exec = malloc(sizeof **exec);
    **exec = *graph;
    return 0;
}
result cuGraphDestroy(struct graph *graph) { free(graph); return 0; }
result cuGraphExecDestroy(struct graph *exec) { free(exec); return 0; }
result cuGraphLaunch(struct graph *exec, uint64_t stream)
{
    char what[32] = "graph of 0";
    for (int n = exec->nodes; n > 0 && what[9] < '9'; --n) ++what[9];
    return tell(what, stream, NULL);
}
