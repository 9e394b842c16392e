// What a block keeps in shared memory, and where its threads find it.
#pragma once
#include <machine.cuh>
#include "layout.cuh"

namespace sac {

// Cards have more or less shared memory, so that the kernel has forms (cycletime/engines/cuda/forms.py). In some of them a
// matrix passes through shared memory in slabs, some rows of tiles at a time; no number depends on that.
constexpr int SLABS = FORM_SLABS;                // 1, 2 or 4
constexpr int SLAB_ROWS = ACROSS / SLABS;        // rows of tiles, as many as a matrix has columns of them
constexpr int SLAB = MATRIX / SLABS;             // words
constexpr bool SUMS_ARE_NEAR = FORM_NEAR_SUMS;   // whether sums over samples are in shared memory

// A barrier for the block. No part of it has barriers of its own, so that one does; see machine::wait_for_block.
DEVICE void meet() { machine::wait_for(0, THREADS); }

// Halves of numbers of any size: those that are too large become the largest, so that a run that diverges has no infinities,
// whose products with zero are no numbers.
DEVICE unsigned bounded_halves(float first, float second) {
    const float most = 65504.0f;
    return machine::halves(fminf(fmaxf(first, -most), most), fminf(fmaxf(second, -most), most));
}

// Of each sample what is exchanged between the threads.
struct Samples {
    float next_noise[SAMPLES][ACTIONS];
    float spread[SAMPLES][ACTIONS];       // the noise, and later times sigma
    float is_inside[SAMPLES][ACTIONS];    // whether log sigma is within its bounds, and can learn
    float action[SAMPLES][ACTIONS];       // what the policy does now
    float pull[SAMPLES][OUTPUTS];         // how the loss changes with the outputs; before, both values' slopes by action
    float value[2][SAMPLES];              // of both critics or targets; while they learn, their errors
    float log_probability[SAMPLES];
    float backup[SAMPLES];
};

// A network's small numbers, and its first layer.
struct Small {
    float second_bias[UNITS];
    float last[UNITS * OUTPUTS];  // [unit][outputs], of as many as are used
    float last_bias[OUTPUTS];
};

// By output (the first is of the second layer's biases), warp and unit: gradients, summed over the warp's samples.
template <bool NEAR>
struct Sums {
    float kept[SUM_WORDS];
    DEVICE float& at(float*, int place) { return kept[place]; }
};
template <>
struct Sums<false> {
    DEVICE float& at(float* far, int place) { return far[place]; }
};

struct alignas(16) Passing {
    unsigned first[FIRST_MATRIX];             // tiles of [input][unit]
    unsigned stage[128 * 64 / 2];             // tiles of [sample][unit]: slopes of the first layer's sums; before, S'
    Sums<SUMS_ARE_NEAR> sums;
};

struct Shared {
    unsigned matrix[SLAB];  // tiles of the second layer's weights, or of [sample][unit]
    union {
        Passing passing;
        unsigned slopes[SLAB / 2];  // tiles of [sample][128]
    };
    unsigned inputs[SAMPLES * INPUTS / 2];  // tiles of [sample][input]
    Samples samples;
    Small small;
    Run run;
    Position position;
    float seen[12];
    float shares[WARPS][OUTPUTS];
    float action[ACTIONS];
    float scale, whiten;  // of Adam's steps
    int ticket, stop;
    unsigned long long began_ns;
    const unsigned* far_matrix;  // what slabs are brought from
    float* far_sums;
};
static_assert(sizeof(Shared) == FORM_BYTES, "the host believes that the form takes another number of bytes");

// A thread's place, and the places of the rows that it gives where four tiles are loaded; see machine::load_tiles.
struct Place {
    int thread, warp, lane, g, t;
    int matrix_down;     // tiles (0, 0), (1, 0), (0, 1), (1, 1) of a matrix with 32 tiles beside each other
    int matrix_across;   // tiles (0, 0), (0, 1), (1, 0), (1, 1)
    int half_down;       // as matrix_down, with 16 tiles beside each other
    int inputs_down;     // the same with 2
    int inputs_across;
    int stage_down;      // tiles (0, warp) to (3, warp) of 8 beside each other
    int actions_across;  // tiles (1, 0) to (1, 3) of 32

    DEVICE static Place here() {
        Place place;
        place.thread = machine::thread(), place.warp = place.thread / 32, place.lane = place.thread % 32;
        place.g = place.lane / 4, place.t = place.lane % 4;
        int row = place.lane % 8 * 4, low = place.lane / 8 % 2, high = place.lane / 16;
        place.matrix_down = (low * ACROSS + high) * TILE + row;
        place.matrix_across = (high * ACROSS + low) * TILE + row;
        place.half_down = (low * ACROSS / 2 + high) * TILE + row;
        place.inputs_down = (low * 2 + high) * TILE + row;
        place.inputs_across = (high * 2 + low) * TILE + row;
        place.stage_down = ((2 * high + low) * 8 + place.warp) * TILE + row;
        place.actions_across = (ACROSS + 2 * high + low) * TILE + row;
        return place;
    }
    // The first of the 16 samples that its warp takes through a network at once.
    DEVICE int first_sample(int pass) const { return pass * SAMPLES / 2 + warp * 16; }
};

// Four neighbouring numbers of the second layer's matrix that a thread works on: rows g and g + 8 of the tiles at columns
// 2t and 2t + 1, in the half of the columns, the 16 rows and the 8 columns that are given.
struct SecondPlace {
    int number;    // the first of them, in a network
    int words[2];  // the pairs' places in the matrix of halves

    DEVICE SecondPlace(const Place& place, int half, int rows, int columns) {
        number = SECOND + ((((half * WARPS + place.warp) * 4 + rows) * 8 + columns) * 32 + place.lane) * 4;
        int down = place.warp % 4 * 8 + rows * 2, beside = half * 16 + place.warp / 4 * 8 + columns;
        words[0] = (down * ACROSS + beside) * TILE + place.lane;
        words[1] = words[0] + ACROSS * TILE;
    }
};

// The same of the first layer's: inputs g and g + 8, units 2t and 2t + 1 of the warp's eight in a quarter.
struct FirstPlace {
    int number;
    int words[2];

    DEVICE FirstPlace(const Place& place, int quarter) {
        number = FIRST + ((quarter * WARPS + place.warp) * 32 + place.lane) * 4;
        words[0] = (quarter * 8 + place.warp) * TILE + place.lane;
        words[1] = words[0] + ACROSS * TILE;
    }
};

// Copy words from device to shared memory, by all threads; they are there after machine::wait_for_copies and a barrier.
DEVICE void begin_copies(unsigned* shared, const unsigned* global, int words) {
    for (int i = 4 * machine::thread(); i < words; i += 4 * THREADS) machine::begin_copy(shared + i, global + i);
}

DEVICE float& sum_at(Shared& shared, int output, int warp, int unit) {
    return shared.passing.sums.at(shared.far_sums, (output * WARPS + warp) * UNITS + unit);
}

// Bring one slab of the network's second layer to shared memory, where not all of it is there.
DEVICE void bring_slab(Shared& shared, int slab) {
    if constexpr (SLABS > 1) {
        meet();
        begin_copies(shared.matrix, shared.far_matrix + slab * SLAB, SLAB);
        machine::wait_for_copies();
        meet();
    }
}

// Bring a network to shared memory, with so many of its outputs. All threads have done with what was there.
template <int USED>
DEVICE void load_network(Shared& shared, const unsigned* scratch, float* state, int network) {
    const unsigned* copy = scratch + network * COPY;
    begin_copies(shared.passing.first, copy + MATRIX, FIRST_MATRIX);
    if (SLABS == 1) begin_copies(shared.matrix, copy, MATRIX);
    if (machine::thread() == 0) shared.far_matrix = copy;
    const float* numbers = weights_of(state, network);
    int unit = machine::thread();
    shared.small.second_bias[unit] = numbers[SECOND_BIAS + unit];
    float4 last = *reinterpret_cast<const float4*>(&numbers[LAST + unit * OUTPUTS]);
    const float all[OUTPUTS] = {last.x, last.y, last.z, last.w};
#pragma unroll
    for (int i = 0; i < USED; i++) shared.small.last[unit * USED + i] = all[i];
    if (unit < OUTPUTS) shared.small.last_bias[unit] = numbers[LAST_BIAS + unit];
    machine::wait_for_copies();
    meet();
}

}  // namespace sac
