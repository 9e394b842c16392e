// A warp takes 16 samples through a network, forwards and backwards. What a layer gives stays in the warp's registers: as
// the sums of one product it is spread over the lanes just as the next one wants it.
#pragma once
#include "memory.cuh"

namespace sac {

using Units = unsigned[ACROSS][2];  // of 16 samples: for each eight units, rows g and g + 8 at units 2t and 2t + 1
using UnitSums = float[ACROSS][4];  // the same before they are packed: row g, then row g + 8

DEVICE float above_zero(float x) { return fmaxf(x, 0); }
DEVICE unsigned positive_halves(float first, float second) {
    const float most = 65504.0f;
    return machine::halves(fminf(above_zero(first), most), fminf(above_zero(second), most));
}
DEVICE float sum_over_t(float value) {
    value += machine::from_mirror(value, 1);
    return value + machine::from_mirror(value, 2);
}

DEVICE float sum_over_g(float value) {
#pragma unroll
    for (int mask = 4; mask < 32; mask *= 2) value += machine::from_mirror(value, mask);
    return value;
}

// The first layer; its biases are the weights of the input that is one.
DEVICE void first_layer(const unsigned (&inputs)[4], const Shared& shared, const Place& place, Units& units) {
#pragma unroll
    for (int n = 0; n < ACROSS; n += 2) {
        unsigned weights[4];
        machine::load_tiles_across(weights, shared.passing.first + place.matrix_down + n * TILE);
        float sums[2][4] = {};
        machine::multiply_halves(sums[0], inputs, weights[0], weights[1]);
        machine::multiply_halves(sums[1], inputs, weights[2], weights[3]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            units[n + i][0] = positive_halves(sums[i][0], sums[i][1]);
            units[n + i][1] = positive_halves(sums[i][2], sums[i][3]);
        }
    }
}

DEVICE void second_layer(const Units& units, Shared& shared, const Place& place, UnitSums& sums) {
#pragma unroll
    for (int n = 0; n < ACROSS; n++) {
        float2 bias = *reinterpret_cast<const float2*>(&shared.small.second_bias[8 * n + 2 * place.t]);
        sums[n][0] = sums[n][2] = bias.x, sums[n][1] = sums[n][3] = bias.y;
    }
#pragma unroll
    for (int k = 0; k < ACROSS; k += 2) {
        if (k % SLAB_ROWS == 0) bring_slab(shared, k / SLAB_ROWS);
        const unsigned left[4] = {units[k][0], units[k][1], units[k + 1][0], units[k + 1][1]};
#pragma unroll
        for (int n = 0; n < ACROSS; n += 2) {
            unsigned weights[4];
            machine::load_tiles_across(weights, shared.matrix + place.matrix_down + (k % SLAB_ROWS * ACROSS + n) * TILE);
            machine::multiply_halves(sums[n], left, weights[0], weights[1]);
            machine::multiply_halves(sums[n + 1], left, weights[2], weights[3]);
        }
    }
}

// The outputs of rows g and g + 8, in all lanes of these rows. The second layer's units are its sums above zero.
template <int USED>
DEVICE void last_layer(const UnitSums& sums, const Shared& shared, const Place& place, float (&outputs)[2][USED]) {
#pragma unroll
    for (int i = 0; i < 2 * USED; i++) outputs[i / USED][i % USED] = 0;
#pragma unroll
    for (int n = 0; n < ACROSS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float* last = &shared.small.last[(8 * n + 2 * place.t + i) * USED];
            float low = above_zero(sums[n][i]), high = above_zero(sums[n][2 + i]);
#pragma unroll
            for (int o = 0; o < USED; o++) outputs[0][o] += low * last[o], outputs[1][o] += high * last[o];
        }
#pragma unroll
    for (int i = 0; i < 2 * USED; i++) {
        float& output = outputs[i / USED][i % USED];
        output = sum_over_t(output) + shared.small.last_bias[i % USED];
    }
}

// One bit for each unit that is above zero.
DEVICE void signs_of(const Units& units, unsigned (&signs)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) signs[i] = 0;
#pragma unroll
    for (int n = 0; n < ACROSS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unsigned both = (units[n][i] & 0x7fffu ? 1u : 0u) | (units[n][i] & 0x7fff0000u ? 2u : 0u);
            signs[n / 8] |= both << (n % 8 * 4 + 2 * i);
        }
}

// Write units or slopes as tiles of [sample][unit]; the halves of the units can lie apart.
template <int BESIDE>
DEVICE void keep_tiles(const Units& units, unsigned* tiles, int sample, const Place& place) {
#pragma unroll
    for (int n = 0; n < ACROSS; n++) {
        unsigned* part = tiles + n / BESIDE * (SAMPLES / 8 * BESIDE * TILE) + place.lane;
#pragma unroll
        for (int i = 0; i < 2; i++) part[((sample / 8 + i) * BESIDE + n % BESIDE) * TILE] = units[n][i];
    }
}

// Eight numbers of each lane, summed over the eight lanes with the same t: each lane gets one of the sums, that of number g.
DEVICE float sum_of_own(float (&numbers)[8], const Place& place) {
    int high = place.g & 4, middle = place.g & 2, low = place.g & 1;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float given = machine::either(high, numbers[i], numbers[4 + i]);
        numbers[i] = machine::either(high, numbers[4 + i], numbers[i]) + machine::from_mirror(given, 16);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float given = machine::either(middle, numbers[i], numbers[2 + i]);
        numbers[i] = machine::either(middle, numbers[2 + i], numbers[i]) + machine::from_mirror(given, 8);
    }
    float given = machine::either(low, numbers[0], numbers[1]);
    return machine::either(low, numbers[1], numbers[0]) + machine::from_mirror(given, 4);
}

// How the loss changes with the second layer's sums, given how it changes with the outputs. `unit` gives its units, of
// which a lane holds those of `UnitSums`. Where it LEARNS, gradients of what follows are summed over the warp's samples.
template <int USED, bool LEARNS, class Unit>
DEVICE void second_slopes(const Unit& unit, const float (&pull)[2][USED], Shared& shared, const Place& place, bool adds,
                          Units& slopes) {
#pragma unroll
    for (int first = 0; first < ACROSS; first += 4) {
        float bias[8], last[USED][8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int n = first + i / 2, column = i % 2;
            const float* weights = &shared.small.last[(8 * n + 2 * place.t + column) * USED];
            float low = above_zero(unit(n, column)), high = above_zero(unit(n, 2 + column));
            float low_slope = 0, high_slope = 0;
#pragma unroll
            for (int o = 0; o < USED; o++) {
                low_slope += pull[0][o] * weights[o], high_slope += pull[1][o] * weights[o];
                last[o][i] = pull[0][o] * low + pull[1][o] * high;
            }
            low_slope = low > 0 ? low_slope : 0, high_slope = high > 0 ? high_slope : 0;
            bias[i] = low_slope + high_slope;
            if (column == 0) {
                slopes[n][0] = machine::bits_of(low_slope), slopes[n][1] = machine::bits_of(high_slope);
            } else {
                slopes[n][0] = bounded_halves(machine::as_float(slopes[n][0]), low_slope);
                slopes[n][1] = bounded_halves(machine::as_float(slopes[n][1]), high_slope);
            }
        }
        if (!LEARNS) continue;
        int own = 8 * (first + place.g / 2) + 2 * place.t + place.g % 2;
#pragma unroll
        for (int o = 0; o <= USED; o++) {
            float& kept = sum_at(shared, o, place.warp, own);
            float sum = sum_of_own(o == 0 ? bias : last[o > 0 ? o - 1 : 0], place);
            kept = adds ? kept + sum : sum;
        }
    }
    if (!LEARNS) return;
#pragma unroll
    for (int o = 0; o < USED; o++) {
        float& kept = shared.shares[place.warp][o];
        float sum = sum_over_g(pull[0][o] + pull[1][o]);
        if (place.lane == 0) kept = adds ? kept + sum : sum;
    }
}

// How the loss changes with 64 of the first layer's sums.
DEVICE void first_slopes(const Units& slopes, unsigned signs, int quarter, Shared& shared, const Place& place,
                         unsigned (&found)[8][2]) {
    float sums[8][4] = {};
    const int row = quarter * 8;
    if (row % SLAB_ROWS == 0) bring_slab(shared, row / SLAB_ROWS);
    const unsigned* weights_at = shared.matrix + place.matrix_across + row % SLAB_ROWS * ACROSS * TILE;
#pragma unroll
    for (int k = 0; k < ACROSS; k += 2) {
        const unsigned left[4] = {slopes[k][0], slopes[k][1], slopes[k + 1][0], slopes[k + 1][1]};
#pragma unroll
        for (int n = 0; n < 8; n += 2) {
            unsigned weights[4];
            machine::load_tiles(weights, weights_at + (n * ACROSS + k) * TILE);
            machine::multiply_halves(sums[n], left, weights[0], weights[1]);
            machine::multiply_halves(sums[n + 1], left, weights[2], weights[3]);
        }
    }
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unsigned both = signs >> (n * 4 + 2 * i);
            found[n][i] = bounded_halves(both & 1 ? sums[n][2 * i] : 0, both & 2 ? sums[n][2 * i + 1] : 0);
        }
}

// The gradient of the first layer's weights to 64 units, of which each warp takes eight, over the 128 samples of a pass.
DEVICE void add_first_gradient(const unsigned (&found)[8][2], Shared& shared, const Place& place, int pass,
                               float (&gradient)[4]) {
    unsigned* stage = shared.passing.stage;
    meet();  // all have read what was there
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) stage[((2 * place.warp + i) * 8 + n) * TILE + place.lane] = found[n][i];
    meet();
    const unsigned* inputs_at = shared.inputs + pass * (SAMPLES / 16) * 2 * TILE + place.inputs_across;
#pragma unroll
    for (int k = 0; k < 16; k += 4) {
        unsigned slopes[4], inputs[2][4];
        machine::load_tiles_across(slopes, stage + place.stage_down + k * 8 * TILE);
        machine::load_tiles_across(inputs[0], inputs_at + k * 2 * TILE);
        machine::load_tiles_across(inputs[1], inputs_at + (k + 2) * 2 * TILE);
        machine::multiply_halves(gradient, inputs[0], slopes[0], slopes[1]);
        machine::multiply_halves(gradient, inputs[1], slopes[2], slopes[3]);
    }
}

// How the loss changes with the inputs 8 to 15, among them the actions, by way of 64 of the first layer's units.
DEVICE void add_input_slopes(const unsigned (&found)[8][2], int quarter, const Shared& shared, const Place& place,
                             float (&slopes)[4]) {
#pragma unroll
    for (int k = 0; k < 8; k += 4) {
        unsigned weights[4];
        machine::load_tiles(weights, shared.passing.first + place.actions_across + (quarter * 8 + k) * TILE);
        const unsigned left[2][4] = {{found[k][0], found[k][1], found[k + 1][0], found[k + 1][1]},
                                     {found[k + 2][0], found[k + 2][1], found[k + 3][0], found[k + 3][1]}};
        machine::multiply_halves(slopes, left[0], weights[0], weights[1]);
        machine::multiply_halves(slopes, left[1], weights[2], weights[3]);
    }
}

}  // namespace sac
