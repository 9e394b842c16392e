// What a block keeps in shared memory, and how it lies there. Cards have more or less of it, so that the kernel has forms
// (cycletime/engines/cuda/forms.py), which differ in two constants that the compiler is given. No number depends on them.
#pragma once
#include "layout.cuh"
#include <machine.cuh>

constexpr int AT_ONCE = FORM_SAMPLES;               // samples that pass the networks at once, 32 or 64
constexpr bool MOMENTS_ARE_NEAR = FORM_NEAR_MOMENTS;  // whether Adam's moments of the second layers are in shared memory

// Matrices of 64 columns lie in rows of 64 words, with the columns of row r exchanged so that neither lanes on rows 0-3
// (or 4-7) at eight neighbouring columns meet in one bank, nor lanes on rows 0, 2, 4, 6 (or 1, 3, 5, 7).
DEVICE int turn_of(int row) { return (((row >> 1) & 1) + 2 * ((row ^ (row >> 2)) & 1)) << 3; }
DEVICE int at(int row, int column) { return row * HIDDEN + (column ^ turn_of(row)); }

// The same for samples' rows of 16 words.
DEVICE int at_sample(int row, int column) { return row * INPUTS + (column ^ ((row >> 1 & 1) << 3 | (row >> 2 & 1) << 2)); }

// The numbers of a network beside the second layer's weights, or Adam's means or squares of them.
struct Small {
    float first[(OBSERVATION + 1) * HIDDEN];  // at(input, unit)
    float second_bias[HIDDEN];
    float last[HIDDEN * ACTIONS];
    float last_bias[ACTIONS];
    float log_std[ACTIONS];
};
constexpr int SMALL_BIAS = SECOND - FIRST, SMALL_LAST = SMALL_BIAS + HIDDEN, SMALL_ENDS = SMALL_LAST + HIDDEN * ACTIONS;
DEVICE float* words_of(Small& small) { return small.first; }
DEVICE const float* words_of(const Small& small) { return small.first; }

// Adam's moments of the second layer's weights, as each thread works on them: in shared memory, or, where that is scarce,
// in the block's own device memory, which stays in the L2 cache.
struct Moments {
    float4 mean[8][HALF], square[8][HALF];
};
template <bool NEAR>
struct Placed;
template <>
struct Placed<true> {
    Moments kept;
    DEVICE void place(float*) {}
    DEVICE float4 mean(int n, int thread) const { return kept.mean[n][thread]; }
    DEVICE float4 square(int n, int thread) const { return kept.square[n][thread]; }
    DEVICE void put(int n, int thread, float4 mean, float4 square) {
        kept.mean[n][thread] = mean;
        kept.square[n][thread] = square;
    }
};
template <>
struct alignas(16) Placed<false> {
    Moments* kept;
    DEVICE void place(float* far) { kept = reinterpret_cast<Moments*>(far); }
    DEVICE float4 mean(int n, int thread) const { return machine::read_far(&kept->mean[n][thread]); }
    DEVICE float4 square(int n, int thread) const { return machine::read_far(&kept->square[n][thread]); }
    DEVICE void put(int n, int thread, float4 mean, float4 square) {
        machine::write_far(&kept->mean[n][thread], mean);
        machine::write_far(&kept->square[n][thread], square);
    }
};

// What the acting warp shares among its lanes.
struct Acting {
    float first[HIDDEN][12];  // of the policy: a unit's weights, then its bias
    float hidden[HIDDEN];
    float2 noise[32];
};

// One network at work.
struct alignas(16) Network {
    float second[HIDDEN * HIDDEN];  // transposed: at(output, input)
    Placed<MOMENTS_ARE_NEAR> moments;
    Small weight, mean, square;
    float hidden[AT_ONCE * HIDDEN];  // at(sample, unit): what the first layer gives
    union {
        float slope[AT_ONCE * HIDDEN];  // at(sample, unit): how the loss changes with the second layer's sums
        Acting acting;                  // of the policy, while it acts
        float sums[THREADS][2];         // of the value: of the whole block, between acting and learning
    };
    float samples[2][AT_ONCE * INPUTS];
    float parts[4][AT_ONCE * ACTIONS];  // each warp's share of the outputs
    float pull[4][AT_ONCE * ACTIONS];   // how the loss changes with the outputs, a copy for each warp
};

struct Shared {
    Network network[2];  // the policy and the value
    Run described;
    Position position;
    int run, stop;
    unsigned long long began_ns;
};
static_assert(sizeof(Shared) == FORM_BYTES, "the host believes that the form takes another number of bytes");

// A thread's place in the half of the block that works on its network, and the places in memory that it comes back to. In
// all of them a tile of eight rows more is a fixed number of words more.
struct Place {
    int network, warp, lane, g, t, thread;
    int own[4];        // rows 2t and 2t + 1 at its hidden unit, then both at the unit eight further
    int across[2][4];  // row 2t (or 2t + 1) at column g of each eight of the first 32; the others lie 32 words further
    int sample[4];     // of samples, rows 2t and 2t + 1 at number g, then both at number g + 8

    DEVICE static Place here() { return of(machine::thread()); }
    // The same, computed here and now: what is kept from long before takes registers that products need.
    DEVICE static Place anew() { return of(machine::anew(machine::thread())); }
    DEVICE static Place of(int thread) {
        Place place;
        place.thread = thread % HALF, place.network = thread / HALF;
        place.warp = place.thread / 32, place.lane = place.thread % 32;
        place.g = place.lane / 4, place.t = place.lane % 4;
#pragma unroll
        for (int i = 0; i < 4; i++) place.own[i] = at(2 * place.t + i % 2, place.unit() + i / 2 * 8);
#pragma unroll
        for (int i = 0; i < 8; i++) place.across[i % 2][i / 2] = at(2 * place.t + i % 2, i / 2 * 8 + place.g);
#pragma unroll
        for (int i = 0; i < 4; i++) place.sample[i] = at_sample(2 * place.t + i % 2, i / 2 * 8 + place.g);
        return place;
    }
    DEVICE int unit() const { return 16 * warp + g; }  // it works on this hidden unit and the one eight further
    // Row g at columns k + 2t and k + 2t + 1, of which k is a multiple of eight.
    DEVICE int along(int k) const { return g * HIDDEN + (k ^ turn_of(g)) + 2 * t; }
    DEVICE void wait() const { machine::wait_for(1 + network, HALF); }
};
constexpr int TILE = 8 * HIDDEN, SAMPLE_TILE = 8 * INPUTS;  // the words of eight rows

// Where a number that is kept in a run's state lies among the small ones.
DEVICE float& small_number(Small& small, int kept) {
    if (kept < SECOND) return small.first[at(kept / HIDDEN, kept % HIDDEN)];
    return small.second_bias[kept - SECOND_BIAS];
}

// Where in a run's state lies what a thread keeps of the second layer's moments.
DEVICE int second_at(const Place& place, int n, int i) {
    return SECOND + (place.unit() + i / 2 * 8) * HIDDEN + 8 * n + 2 * place.t + i % 2;
}

// Read a run's numbers from device memory; each half reads its own network.
DEVICE void load_network(Network& network, float* state, const Place& place) {
    const float* weights = numbers_of(state, WEIGHTS, place.network);
    const float* means = numbers_of(state, MEANS, place.network);
    const float* squares = numbers_of(state, SQUARES, place.network);
    for (int i = place.thread; i < HIDDEN * HIDDEN; i += HALF)
        network.second[at(i % HIDDEN, i / HIDDEN)] = weights[SECOND + i];
    for (int n = 0; n < 8; n++) {
        int of[4];
        for (int i = 0; i < 4; i++) of[i] = second_at(place, n, i);
        network.moments.put(n, place.thread, {means[of[0]], means[of[1]], means[of[2]], means[of[3]]},
                            {squares[of[0]], squares[of[1]], squares[of[2]], squares[of[3]]});
    }
    // Short mini-batches leave samples from before in their last tiles. These weigh nothing, but only if they are
    // numbers, which another run's may not be.
    for (int i = place.thread; i < AT_ONCE * INPUTS; i += HALF) network.samples[0][i] = network.samples[1][i] = 0;
    place.wait();
    for (int i = place.thread; i < NUMBERS; i += HALF) {
        if (i >= SECOND && i < SECOND_BIAS) continue;
        small_number(network.weight, i) = weights[i];
        small_number(network.mean, i) = means[i];
        small_number(network.square, i) = squares[i];
    }
}

DEVICE void save_network(Network& network, float* state, const Place& place) {
    float* weights = numbers_of(state, WEIGHTS, place.network);
    float* means = numbers_of(state, MEANS, place.network);
    float* squares = numbers_of(state, SQUARES, place.network);
    for (int i = place.thread; i < HIDDEN * HIDDEN; i += HALF)
        weights[SECOND + i] = network.second[at(i % HIDDEN, i / HIDDEN)];
    for (int n = 0; n < 8; n++) {
        float4 mean = network.moments.mean(n, place.thread), square = network.moments.square(n, place.thread);
        for (int i = 0; i < 4; i++) {
            means[second_at(place, n, i)] = (&mean.x)[i];
            squares[second_at(place, n, i)] = (&square.x)[i];
        }
    }
    for (int i = place.thread; i < NUMBERS; i += HALF) {
        if (i >= SECOND && i < SECOND_BIAS) continue;
        weights[i] = small_number(network.weight, i);
        means[i] = small_number(network.mean, i);
        squares[i] = small_number(network.square, i);
    }
}
