// What each of 1000 dependent steps costs: a launch, a node of a graph, a grid-wide barrier of a cooperative launch.
// nvcc -O3 -std=c++17 -arch=sm_90 --extended-lambda studies/polybench/grid_barrier.cu -o /tmp/grid_barrier && /tmp/grid_barrier
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>
#include <algorithm>
namespace cg = cooperative_groups;
__global__ void one(double *a, long n) { for (long i = blockIdx.x*(long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x*blockDim.x) a[i] = a[i]*0.5 + 1.0; }
__global__ void fused(double *a, long n, int steps) { auto g = cg::this_grid(); for (int t = 0; t < steps; t++) { for (long i = blockIdx.x*(long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x*blockDim.x) a[i] = a[i]*0.5 + 1.0; g.sync(); } }
int main() {
  const int steps = 1000; cudaStream_t s; cudaStreamCreate(&s); cudaEvent_t b, e; cudaEventCreate(&b); cudaEventCreate(&e);
  for (int per : {1, 2, 4, 8}) for (long n : {132L*256, 1L << 20, 1L << 23}) {
    int grid = 132*per, block = 256; double *a; cudaMalloc(&a, n*8); cudaMemset(a, 0, n*8);
    auto timed = [&](auto f) { std::vector<float> t; for (int k = 0; k < 9; k++) { cudaEventRecord(b, s); f(); cudaEventRecord(e, s); cudaEventSynchronize(e); float ms; cudaEventElapsedTime(&ms, b, e); t.push_back(ms); } std::sort(t.begin(), t.end()); return t[4]*1e3/steps; };
    auto launches = [&] { for (int t = 0; t < steps; t++) one<<<grid, block, 0, s>>>(a, n); };
    cudaGraph_t g; cudaGraphExec_t x; cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); launches(); cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&x, g, 0);
    int st = steps; void *args[] = {&a, &n, &st};
    float l = timed(launches), q = timed([&] { cudaGraphLaunch(x, s); }), c = timed([&] { cudaLaunchCooperativeKernel((void*)fused, dim3(grid), dim3(block), args, 0, s); });
    printf("groups a multiprocessor %d, elements %ld: launch %.2f us, graph node %.2f us, grid barrier %.2f us; %s\n", per, n, l, q, c, cudaGetErrorString(cudaGetLastError()));
    cudaFree(a);
  }
}
