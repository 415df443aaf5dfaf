/* Compiles an OpenCL program without running it: what ends this process does not end the one that asks.
 *
 * trial LIBRARY DEVICE SOURCE OPTIONS
 *
 * The device is the one of this number among all devices of all platforms. Exit code 0: the compiler came to an
 * end; 2: there was nothing to try. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 64, ALL_DEVICES = -1, BINARY_SIZES = 0x1165, BINARIES = 0x1166 };

typedef int32_t (*get_platforms)(uint32_t, void **, uint32_t *);
typedef int32_t (*get_devices)(void *, uint64_t, uint32_t, void **, uint32_t *);
typedef void *(*create_context)(const intptr_t *, uint32_t, void *const *, void *, void *, int32_t *);
typedef void *(*create_program)(void *, uint32_t, const char **, const size_t *, int32_t *);
typedef int32_t (*build_program)(void *, uint32_t, void *const *, const char *, void *, void *);
typedef int32_t (*get_info)(void *, uint32_t, size_t, void *, size_t *);

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        exit(2);
    return found;
}

static void *device_at(long index)
{
    void *platforms[MANY], *devices[MANY];
    uint32_t n = 0, m = 0;
    if (((get_platforms)function("clGetPlatformIDs"))(MANY, platforms, &n))
        return NULL;
    for (uint32_t k = 0; k < n && k < MANY; k++) {
        m = 0;
        if (((get_devices)function("clGetDeviceIDs"))(platforms[k], (uint32_t)ALL_DEVICES, MANY, devices, &m))
            continue;
        if (index < (long)m && index < MANY)
            return devices[index];
        index -= (long)m;
    }
    return NULL;
}

static char *content(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        return NULL;
    long length = ftell(file);
    rewind(file);
    char *text = length < 0 ? NULL : calloc((size_t)length + 1, 1);
    return text && fread(text, 1, (size_t)length, file) == (size_t)length ? text : NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5 || !(library = dlopen(argv[1], RTLD_NOW)))
        return 2;
    void *device = device_at(atol(argv[2]));
    const char *source = content(argv[3]);
    int32_t error = 0;
    if (!device || !source)
        return 2;
    void *context = ((create_context)function("clCreateContext"))(NULL, 1, &device, NULL, NULL, &error);
    if (error)
        return 2;
    void *program = ((create_program)function("clCreateProgramWithSource"))(context, 1, &source, NULL, &error);
    if (error)
        return 2;
    /* a source that is refused is reported by the process that asks, with the log */
    if (((build_program)function("clBuildProgram"))(program, 1, &device, argv[4], NULL, NULL))
        return 0;
    /* work-groups are compiled for what a binary holds */
    size_t size = 0;
    get_info info = (get_info)function("clGetProgramInfo");
    if (info(program, BINARY_SIZES, sizeof size, &size, NULL))
        return 0;
    unsigned char *binary = malloc(size + 1);
    if (binary)
        info(program, BINARIES, sizeof binary, &binary, NULL);
    return 0;
}
