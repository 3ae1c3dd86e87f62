/* CUDA C on a processor: the blocks of a grid run one after the other. The threads of a block are fibers, which change
   at barriers and shuffles only; a kernel without any runs them one after the other, too. A fiber is made once and runs
   its thread of one block after the other. */
#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

using std::ptrdiff_t;
using std::size_t;

#define FUNC_HOST
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))

namespace {

struct Index {
    int x;
};
Index blockIdx, threadIdx, blockDim, gridDim;

struct Barrier {
    int arrived, generation;
};
enum { MOST = 1024, STACK = 1 << 16 };
jmp_buf scheduler, fibers[MOST];
ucontext_t contexts[MOST], start;
bool exists[MOST], done[MOST];
char *stacks;
Barrier block_barrier, warp_barriers[MOST / 32];
uint64_t exchanged[MOST];
void (*body)(void **);
void **arguments;

void yield_fiber() { /* _setjmp asks the kernel for nothing, as swapcontext does for the mask of signals */
    if (_setjmp(fibers[threadIdx.x]) == 0) {
        _longjmp(scheduler, 1);
    }
}

void wait_at(Barrier &barrier, int count) {
    const int mine = barrier.generation;
    if (++barrier.arrived == count) {
        barrier.arrived = 0;
        ++barrier.generation;
        return;
    }
    while (barrier.generation == mine) {
        yield_fiber();
    }
}

void fiber() {
    for (;;) {
        body(arguments);
        done[threadIdx.x] = true;
        yield_fiber();
    }
}

void resume(int t) {
    threadIdx.x = t;
    if (_setjmp(scheduler) != 0) {
        return;
    }
    if (exists[t]) {
        _longjmp(fibers[t], 1);
    }
    exists[t] = true;
    getcontext(&contexts[t]);
    contexts[t].uc_stack.ss_sp = stacks + static_cast<size_t>(t) * STACK;
    contexts[t].uc_stack.ss_size = STACK;
    contexts[t].uc_link = nullptr;
    makecontext(&contexts[t], fiber, 0);
    swapcontext(&start, &contexts[t]);
}

void func_host_run(int blocks, int threads, bool has_barriers, void (*kernel)(void **), void **given) {
    body = kernel;
    arguments = given;
    gridDim.x = blocks;
    blockDim.x = threads;
    if (has_barriers && stacks == nullptr) {
        stacks = static_cast<char *>(malloc(static_cast<size_t>(MOST) * STACK));
    }
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        if (!has_barriers) {
            for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {
                kernel(given);
            }
            continue;
        }
        block_barrier = Barrier();
        memset(warp_barriers, 0, sizeof warp_barriers);
        memset(done, 0, sizeof done);
        for (int left = threads; left > 0;) {
            for (int t = 0; t < threads; ++t) {
                if (!done[t]) {
                    resume(t);
                    left -= done[t];
                }
            }
        }
    }
}

void __syncthreads() {
    wait_at(block_barrier, blockDim.x);
}

void __syncwarp() {
    wait_at(warp_barriers[threadIdx.x / 32], 32);
}

template <class T> T shuffled(T x, int lane) {
    const int me = threadIdx.x, first = me / 32 * 32;
    memcpy(&exchanged[me], &x, sizeof x);
    __syncwarp();
    T other;
    memcpy(&other, &exchanged[first + (lane >= 0 && lane < 32 ? lane : me % 32)], sizeof other);
    __syncwarp();
    return other;
}

template <class T> T __shfl_down_sync(unsigned, T x, int distance) {
    return shuffled(x, threadIdx.x % 32 + distance);
}

template <class T> T __shfl_up_sync(unsigned, T x, int distance) {
    return shuffled(x, threadIdx.x % 32 - distance);
}

template <class T> T __shfl_sync(unsigned, T x, int lane) {
    return shuffled(x, lane);
}

int atomicOr(int *place, int bits) {
    const int before = *place;
    *place |= bits;
    return before;
}

template <class To, class From> To same_bits(From x) {
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

long long __double_as_longlong(double x) {
    return same_bits<long long>(x);
}
double __longlong_as_double(long long x) {
    return same_bits<double>(x);
}
int __float_as_int(float x) {
    return same_bits<int>(x);
}
float __int_as_float(int x) {
    return same_bits<float>(x);
}
int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
float func_host_float_of_half(uint16_t half) {
    return static_cast<float>(same_bits<_Float16>(half));
}
uint16_t func_host_half_of_float(float x) {
    return same_bits<uint16_t>(static_cast<_Float16>(x));
}

} // namespace
