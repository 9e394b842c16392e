// Products of small matrices on the tensor cores with nearly the precision of float32: each factor is the sum of two
// numbers of 11 bits, and the three products that matter are added up ('3xTF32').
#pragma once
#include <machine.cuh>

template <int N>
struct Split {
    float high[N], low[N];

    DEVICE explicit Split(const float (&number)[N]) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            high[i] = machine::as_float((machine::bits_of(number[i]) + 0x1000u) & 0xffffe000u);
            low[i] = number[i] - high[i];
        }
    }
};

// sums[n] += a b[n], the small products first. Neighbouring products do not wait for one another.
template <int N>
DEVICE void multiply(float (&sums)[N][4], const float (&a)[4], const float (&b)[N][2]) {
    Split<4> left(a);
    float high[N][2], low[N][2];
#pragma unroll
    for (int n = 0; n < N; n++) {
        Split<2> right(b[n]);
        high[n][0] = right.high[0], high[n][1] = right.high[1], low[n][0] = right.low[0], low[n][1] = right.low[1];
    }
#pragma unroll
    for (int n = 0; n < N; n++) machine::multiply(sums[n], left.low, high[n]);
#pragma unroll
    for (int n = 0; n < N; n++) machine::multiply(sums[n], left.high, low[n]);
#pragma unroll
    for (int n = 0; n < N; n++) machine::multiply(sums[n], left.high, high[n]);
}

// The same with the small products summed apart, so that fewer products wait for one another.
template <int N>
DEVICE void multiply(float (&sums)[N][4], float (&small)[N][4], const float (&a)[4], const float (&b)[N][2]) {
    Split<4> left(a);
#pragma unroll
    for (int n = 0; n < N; n++) {
        Split<2> right(b[n]);
        machine::multiply(small[n], left.low, right.high);
        machine::multiply(sums[n], left.high, right.high);
        machine::multiply(small[n], left.high, right.low);
    }
}

template <int N>
DEVICE void add(float (&sums)[N][4], const float (&more)[N][4]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) sums[n][i] += more[n][i];
}

template <int N>
DEVICE void clear(float (&sums)[N][4]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) sums[n][i] = 0;
}

DEVICE float tanh_of(float x) {
    return 1 - 2 * machine::inverse_of(machine::exp2_of(2.8853900817779268f * x) + 1);
}

// Two neighbouring words at an even place.
DEVICE void read_pair(const float* place, float& first, float& second) {
    float2 pair = *reinterpret_cast<const float2*>(place);
    first = pair.x;
    second = pair.y;
}
