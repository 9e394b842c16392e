// The networks' outputs for a chunk of samples. A half of the block works on one network, a warp on sixteen hidden units
// (g, g + 8) for all samples (2t, 2t + 1 of each tile of eight); products are hidden units x samples.
#pragma once
#include "memory.cuh"
#include "tiles.cuh"

// Adds to `sums` the product of a matrix of units x units by one of samples x units, whose rows lie at(sample, unit);
// `left(k, along, a)` reads what a lane holds of the first at the eight columns from k on.
template <int TILES, class Left>
DEVICE void multiply_by_samples(float (&sums)[TILES][4], const float* samples, const Place& place, Left left) {
    float small[TILES][4];
    clear(small);
#pragma unroll(TILES <= 2 ? 8 : TILES <= 4 ? 4 : 2)
    for (int k = 0; k < HIDDEN; k += 8) {
        float a[4], b[TILES][2];
        int along = place.along(k);
        left(k, along, a);
#pragma unroll
        for (int n = 0; n < TILES; n++) read_pair(&samples[n * TILE + along], b[n][0], b[n][1]);
        multiply(sums, small, a, b);
    }
    add(sums, small);
}

// Both layers of hidden units, for TILES tiles of eight samples; those of the first are left in `hidden`.
template <int TILES>
DEVICE void hidden_layers(Network& network, const float* samples, const Place& place, float (&two)[TILES][4]) {
    int unit = place.unit(), t2 = 2 * place.t;
    float one[TILES][4];
    clear(one);
#pragma unroll
    for (int k = 0; k < INPUTS; k += 8) {
        float a[4], b[TILES][2];
        int along = at_sample(place.g, k + t2);
#pragma unroll
        for (int i = 0; i < 4; i++)  // the sample's numbers beyond the tenth are no inputs
            a[i] = k == 0 || place.t == 0 ? network.weight.first[k * HIDDEN + place.own[i]] : 0;
#pragma unroll
        for (int n = 0; n < TILES; n++) read_pair(&samples[n * SAMPLE_TILE + along], b[n][0], b[n][1]);
        multiply(one, a, b);
    }
#pragma unroll
    for (int n = 0; n < TILES; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) network.hidden[n * TILE + place.own[i]] = tanh_of(one[n][i]);
    }
    place.wait();
    float bias[2] = {network.weight.second_bias[unit], network.weight.second_bias[unit + 8]};
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) two[n][i] = bias[i / 2];
    multiply_by_samples(two, network.hidden, place, [&](int, int along, float (&a)[4]) {
        read_pair(&network.second[2 * place.warp * TILE + along], a[0], a[1]);
        read_pair(&network.second[(2 * place.warp + 1) * TILE + along], a[2], a[3]);
    });
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) two[n][i] = tanh_of(two[n][i]);
}

// The warp's share of the outputs, summed over its units, goes to `parts`: after the next barrier `output` is right.
template <int TILES>
DEVICE void share_outputs(Network& network, const Place& place, const float (&two)[TILES][4]) {
    int unit = place.unit();
    int upper = place.g & 4, right = place.g & 2;
    float last[2][ACTIONS], share[TILES];
    read_pair(&network.weight.last[unit * ACTIONS], last[0][0], last[0][1]);
    read_pair(&network.weight.last[(unit + 8) * ACTIONS], last[1][0], last[1][1]);
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        // Four sums over the eight lanes that share t: each exchange halves what a lane is left with.
        float sum[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] = two[n][i / 2] * last[0][i % 2] + two[n][2 + i / 2] * last[1][i % 2];
        float mine_0 = machine::either(upper, sum[2], sum[0]), mine_1 = machine::either(upper, sum[3], sum[1]);
        mine_0 += machine::from_mirror(machine::either(upper, sum[0], sum[2]), 16);
        mine_1 += machine::from_mirror(machine::either(upper, sum[1], sum[3]), 16);
        share[n] = machine::either(right, mine_1, mine_0) +
                   machine::from_mirror(machine::either(right, mine_0, mine_1), 8);
        share[n] += machine::from_mirror(share[n], 4);
    }
    float* mine = &network.parts[place.warp][(2 * place.t + upper / 4) * ACTIONS + right / 2];
    if (place.g % 2 == 0) {
#pragma unroll
        for (int n = 0; n < TILES; n++) mine[8 * n * ACTIONS] = share[n];
    }
}

DEVICE float output(const Network& network, int sample, int component) {
    int index = sample * ACTIONS + component;
    return (network.parts[0][index] + network.parts[1][index]) + (network.parts[2][index] + network.parts[3][index]) +
           network.weight.last_bias[component];
}

// Rows of the batch, one after the other, to a buffer of samples; rows beyond the last repeat it.
DEVICE void read_rows(float* samples, const float* rows, int first, int count, const Place& place) {
    for (int i = place.thread; i < AT_ONCE * INPUTS / 4; i += HALF) {
        int sample = i / 4, row = min(first + sample, count - 1);
        *reinterpret_cast<float4*>(&samples[at_sample(sample, i % 4 * 4)]) =
            *reinterpret_cast<const float4*>(&rows[row * INPUTS + i % 4 * 4]);
    }
}

// Calls `take(row, sample)` for rows below `count`, once each, when the outputs for them are there. Each half of the
// block does so for its network; a warp's lanes take two samples each.
template <class Take>
DEVICE void for_each_row(Network& network, const float* rows, int count, const Place& place, Take take) {
    for (int first = 0; first < count; first += AT_ONCE) {
        float two[AT_ONCE / 8][4];
        read_rows(network.samples[0], rows, first, count, place);
        place.wait();
        hidden_layers<AT_ONCE / 8>(network, network.samples[0], place, two);
        share_outputs<AT_ONCE / 8>(network, place, two);
        place.wait();
        if (place.warp == 0)
            for (int sample = place.lane; sample < AT_ONCE; sample += 32)
                if (first + sample < count) take(first + sample, sample);
        place.wait();
    }
}
