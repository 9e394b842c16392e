// What the kernel asks of the machine, each in one place: threads, barriers, shuffles, copies, matrix products, and
// quick functions. Tests replace this file by one that runs on a CPU (tests/engines/cuda/emulator).
#pragma once

#define DEVICE __device__ __forceinline__
#define DEVICE_APART __device__ __noinline__  // for parts whose registers should not meet

namespace machine {

constexpr unsigned ALL_LANES = 0xffffffffu;

DEVICE int thread() { return threadIdx.x; }
DEVICE int block() { return blockIdx.x; }

// One barrier would do. Where parts of a block have passed different numbers of their own barriers, racecheck (of
// compute-sanitizer 2025.3) takes what they exchange through a single barrier of the block for a race, and through two not.
DEVICE void wait_for_block() {
    __syncthreads();
    __syncthreads();
}
DEVICE void wait_for_warp() { __syncwarp(); }
// A barrier for a part of the block; its warps all name the same number.
DEVICE void wait_for(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }

DEVICE float from_lane(float value, int lane) { return __shfl_sync(ALL_LANES, value, lane); }
DEVICE float from_mirror(float value, int mask) { return __shfl_xor_sync(ALL_LANES, value, mask); }

// One of two numbers without a branch: compilers like to turn repeated choices into branches, and shuffles of lanes that
// took different ones are slow.
DEVICE float either(int condition, float yes, float no) {
    float chosen;
    asm("{ .reg .pred p; setp.ne.s32 p, %3, 0; selp.f32 %0, %1, %2, p; }" : "=f"(chosen) : "f"(yes), "f"(no), "r"(condition));
    return chosen;
}

// The same number, but one that is new to the compiler: what follows from it is computed where it is used, and not kept
// in registers from long before.
DEVICE int anew(int number) {
    asm volatile("" : "+r"(number));
    return number;
}

DEVICE int take_ticket(int* counter) { return atomicAdd(counter, 1); }
DEVICE unsigned long long now_ns() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

// 16 bytes from device memory to shared memory; they are there once the thread has waited and a barrier was passed.
DEVICE void begin_copy(void* shared, const void* global) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}
DEVICE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// sum += a b for a 16 x 8 and an 8 x 8 matrix spread over the warp, with factors of 10 bits beside the leading one.
// With g = lane / 4 and t = lane % 4, a lane holds of `a` the rows g and g + 8 at two columns, of `b` column g at two
// rows, and of `sum` the rows g and g + 8 at the columns 2t and 2t + 1. Which columns of `a` meet which rows of `b` is
// the caller's choice, as both are summed over; here it is always 2t and 2t + 1, so that a sum can be the next `a`.
DEVICE void multiply(float (&sum)[4], const float (&a)[4], const float (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[1])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// Two numbers of 10 bits beside the leading one ('halves'), which are the factors below.
DEVICE unsigned halves(float first, float second) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
DEVICE float2 from_halves(unsigned both) {
    float2 numbers;
    asm("{ .reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }"
        : "=f"(numbers.x), "=f"(numbers.y)
        : "r"(both));
    return numbers;
}

// sum += a b for a 16 x 16 and a 16 x 8 matrix of halves spread over the warp. With g = lane / 4 and t = lane % 4, a lane
// holds of `a` the rows g and g + 8 at columns 2t and 2t + 1, then both at the columns eight further; of `b` column g at
// the rows 2t and 2t + 1, then at those eight further; and of `sum` what `multiply` holds.
DEVICE void multiply_halves(float (&sum)[4], const unsigned (&a)[4], unsigned b_0, unsigned b_1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
}

// Four tiles of 8 x 8 halves from shared memory, spread over the warp: of each, a lane gets row g at columns 2t and 2t + 1,
// or (across) column g at rows 2t and 2t + 1. Lane i gives the place of row i % 8 of tile i / 8.
DEVICE void load_tiles(unsigned (&tile)[4], const unsigned* row) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(address));
}
DEVICE void load_tiles_across(unsigned (&tile)[4], const unsigned* row) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(address));
}

// Device memory that is used once and not soon again, so that it does not displace what is.
DEVICE float4 read_once(const float4* place) { return __ldcs(place); }
DEVICE void write_once(float4* place, float4 numbers) { __stcs(place, numbers); }
// Device memory that stays in the L2 cache: the L1 cache is too small for it on most cards, and would be asked in vain.
DEVICE float4 read_far(const float4* place) { return __ldcg(place); }
DEVICE void write_far(float4* place, float4 numbers) { __stcg(place, numbers); }
// Have 128 bytes brought near, without waiting for them.
DEVICE void fetch_ahead(const void* place) { asm volatile("prefetch.global.L2 [%0];" ::"l"(place)); }

DEVICE unsigned bits_of(float value) { return __float_as_uint(value); }
DEVICE float as_float(unsigned bits) { return __uint_as_float(bits); }
DEVICE unsigned high_product(unsigned a, unsigned b) { return __umulhi(a, b); }

// Within about two units in the last place, sine and cosine within 5e-7 for angles between -pi and pi.
DEVICE float exp2_of(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float log2_of(float x) { float y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float inverse_of(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float root_of(float x) { float y; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float sine_of(float x) { float y; asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float cosine_of(float x) { float y; asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float rounded(float x) { return rintf(x); }

}  // namespace machine
