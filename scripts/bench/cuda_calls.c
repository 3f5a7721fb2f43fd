// SPDX-License-Identifier: Apache-2.0
// Counts calls of the CUDA runtime in a process that links it dynamically, as programs on PyTorch's wheels do:
//
//   cc -O2 -shared -fPIC -o libcuda_calls.so cuda_calls.c -ldl
//   CUDA_CALLS_FILE=calls.txt LD_PRELOAD=$PWD/libcuda_calls.so train ...
//
// Writes "name count" lines when the process ends, by _exit() too. What cuDNN and cuBLAS launch inside is not seen.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLS(X)                                                                                                    \
  X(cudaLaunchKernel) X(cudaLaunchKernelExC) X(cudaMemcpyAsync) X(cudaMemcpy) X(cudaStreamSynchronize)              \
  X(cudaEventSynchronize) X(cudaDeviceSynchronize) X(cudaMalloc) X(cudaHostAlloc) X(cudaMemsetAsync)

// Arguments by value that do not fit into registers (the two dim3 of a launch) lie on the stack: ten words of it are
// handed on.
typedef long (*LongCall)(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long);

#define COUNTER(name)                                                                                               \
  static atomic_long count_##name;                                                                                  \
  long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, \
            long n, long o, long p) {                                                                               \
    static LongCall next;                                                                                           \
    if (!next) next = (LongCall)dlsym(RTLD_NEXT, #name);                                                            \
    atomic_fetch_add_explicit(&count_##name, 1, memory_order_relaxed);                                              \
    return next(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);                                                    \
  }
CALLS(COUNTER)

static void write_counts(void) {
  const char *path = getenv("CUDA_CALLS_FILE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
#define WRITE(name) fprintf(file, "%s %ld\n", #name, atomic_load(&count_##name));
  CALLS(WRITE)
  fclose(file);
}

void _Exit(int code) {
  write_counts();
  _exit(code);
}
