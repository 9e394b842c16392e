// Adam's steps (Kingma & Ba 2014), and the gradient of the second layer's weights that they follow.
#pragma once
#include "memory.cuh"

namespace sac {

// A network that learns: its numbers, Adam's moments of them, and where it is FOLLOWED the target that follows it.
template <bool FOLLOWED>
struct Learner {
    float *weights, *means, *squares, *target;
    unsigned *copy, *target_copy;
    float scale, whiten, smoothing;

    DEVICE Learner(const Shared& shared, unsigned* scratch, int network) {
        float* state = shared.run.state;
        int follower = FOLLOWED ? network + TARGET - CRITIC : network;
        weights = weights_of(state, network), means = means_of(state, network), squares = squares_of(state, network);
        target = weights_of(state, follower);
        copy = scratch + network * COPY, target_copy = scratch + follower * COPY;
        scale = shared.scale, whiten = shared.whiten, smoothing = shared.run.target_smoothing;
    }

    DEVICE float followed(float kept, float weight) const { return smoothing * weight + (1 - smoothing) * kept; }

    // A weight after a step; the gradient is a sum over the samples.
    DEVICE float moved(float weight, float& mean, float& square, float sum) const {
        float gradient = sum * (1.0f / SAMPLES);
        mean = 0.9f * mean + 0.1f * gradient;
        square = 0.999f * square + 0.001f * gradient * gradient;
        return weight - scale * mean * machine::inverse_of(machine::root_of(square) * whiten + 1e-8f);
    }

    DEVICE void move(int number, float sum) const {
        float mean = means[number], square = squares[number];
        float weight = moved(weights[number], mean, square, sum);
        weights[number] = weight, means[number] = mean, squares[number] = square;
        if (FOLLOWED) target[number] = followed(target[number], weight);
    }
};

// Four numbers of a matrix that lie side by side, on their way through a step. What several of them need is read before
// any is written, since a thread waits long for what it reads.
template <bool FOLLOWED>
struct Moving {
    float4 weight, mean, square, kept;

    DEVICE void read(const Learner<FOLLOWED>& learner, int number) {
        weight = four(learner.weights, number), mean = four(learner.means, number);
        square = four(learner.squares, number);
        if (FOLLOWED) kept = four(learner.target, number);
    }

    DEVICE void move(const Learner<FOLLOWED>& learner, const float (&sums)[4]) {
        weight.x = learner.moved(weight.x, mean.x, square.x, sums[0]);
        weight.y = learner.moved(weight.y, mean.y, square.y, sums[1]);
        weight.z = learner.moved(weight.z, mean.z, square.z, sums[2]);
        weight.w = learner.moved(weight.w, mean.w, square.w, sums[3]);
        if (FOLLOWED)
            kept = {learner.followed(kept.x, weight.x), learner.followed(kept.y, weight.y),
                    learner.followed(kept.z, weight.z), learner.followed(kept.w, weight.w)};
    }

    // Also as halves, for the products.
    DEVICE void write(const Learner<FOLLOWED>& learner, int number, int matrix, const int (&words)[2]) const {
        put(learner.weights, number, weight), put(learner.means, number, mean), put(learner.squares, number, square);
        if (FOLLOWED) put(learner.target, number, kept);
        put_halves(learner.copy + matrix, words, weight);
        if (FOLLOWED) put_halves(learner.target_copy + matrix, words, kept);
    }

    DEVICE static float4 four(const float* numbers, int number) {
        return machine::read_once(reinterpret_cast<const float4*>(numbers + number));
    }
    DEVICE static void put(float* numbers, int number, float4 four) {
        machine::write_once(reinterpret_cast<float4*>(numbers + number), four);
    }
    DEVICE static void put_halves(unsigned* copy, const int (&words)[2], float4 four) {
        copy[words[0]] = machine::halves(four.x, four.y);
        copy[words[1]] = machine::halves(four.z, four.w);
    }
};

// Move the biases and the last layer, each unit's by its thread, and the first layer's weights.
template <int USED, bool FOLLOWED>
DEVICE void move_small(Shared& shared, const Place& place, const Learner<FOLLOWED>& learner, const float (&first)[4][4]) {
    int unit = place.thread;
    float sums[1 + USED];
#pragma unroll
    for (int o = 0; o <= USED; o++) {
        sums[o] = 0;
        for (int warp = 0; warp < WARPS; warp++) sums[o] += sum_at(shared, o, warp, unit);
    }
    learner.move(SECOND_BIAS + unit, sums[0]);
#pragma unroll
    for (int o = 0; o < USED; o++) learner.move(LAST + unit * OUTPUTS + o, sums[1 + o]);
    if (unit < USED) {
        float sum = 0;
        for (int warp = 0; warp < WARPS; warp++) sum += shared.shares[warp][unit];
        learner.move(LAST_BIAS + unit, sum);
    }
    Moving<FOLLOWED> moving[4];
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) moving[quarter].read(learner, FirstPlace(place, quarter).number);
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) {
        FirstPlace at(place, quarter);
        moving[quarter].move(learner, first[quarter]);
        moving[quarter].write(learner, at.number, MATRIX, at.words);
    }
}

// Adds to the gradient of half of the second layer's weights, all inputs to 128 of its units, what the samples of a slab
// say: 64 x 64 for each warp.
DEVICE void add_second_gradient(const Shared& shared, const Place& place, float (&sums)[4][8][4]) {
    const unsigned* units_at = shared.matrix + place.matrix_across + place.warp % 4 * 8 * TILE;
    const unsigned* slopes_at = shared.slopes + place.half_down + place.warp / 4 * 8 * TILE;
#pragma unroll 2
    for (int k = 0; k < SLAB_ROWS; k += 2) {
        unsigned units[4][4];
#pragma unroll
        for (int m = 0; m < 4; m++) machine::load_tiles_across(units[m], units_at + (k * ACROSS + 2 * m) * TILE);
#pragma unroll
        for (int n = 0; n < 8; n += 2) {
            unsigned slopes[4];
            machine::load_tiles_across(slopes, slopes_at + (k * ACROSS / 2 + n) * TILE);
#pragma unroll
            for (int m = 0; m < 4; m++) {
                machine::multiply_halves(sums[m][n], units[m], slopes[0], slopes[1]);
                machine::multiply_halves(sums[m][n + 1], units[m], slopes[2], slopes[3]);
            }
        }
    }
}

// The second layer's numbers are moved so many fours of a thread at a time, and brought near so many fours before.
constexpr int TOGETHER = 8, AHEAD = 8;

// Have a warp's numbers of eight fours brought near: each lane asks for 128 bytes of each of the arrays.
template <bool FOLLOWED>
DEVICE void fetch_ahead(const Learner<FOLLOWED>& learner, const Place& place, int half, int first) {
    int number = SecondPlace(place, half, first / 8, first % 8).number - 4 * place.lane + 32 * place.lane;
    machine::fetch_ahead(learner.weights + number);
    machine::fetch_ahead(learner.means + number);
    machine::fetch_ahead(learner.squares + number);
    if (FOLLOWED) machine::fetch_ahead(learner.target + number);
}

template <bool FOLLOWED>
DEVICE void move_half(const Learner<FOLLOWED>& learner, const Place& place, int half, const float (&sums)[4][8][4]) {
#pragma unroll
    for (int first = 0; first < 32; first += TOGETHER) {
        Moving<FOLLOWED> moving[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            moving[i].read(learner, SecondPlace(place, half, first / 8, first % 8 + i).number);
        if (first % 8 == 0 && first + AHEAD < 32) fetch_ahead(learner, place, half, first + AHEAD);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            SecondPlace at(place, half, first / 8, first % 8 + i);
            moving[i].move(learner, sums[first / 8][first % 8 + i]);
            moving[i].write(learner, at.number, 0, at.words);
        }
    }
}

// Move the second layer's weights by what the passes left behind. All threads are done with what is in shared memory.
template <bool FOLLOWED>
DEVICE_APART void move_second(Shared& shared, unsigned* scratch, const Learner<FOLLOWED>& learner) {
    Place place = Place::here();
    const unsigned *units = scratch + HIDDEN_UNITS, *slopes = scratch + SLOPES;
    begin_copies(shared.matrix, units, SLAB);
    begin_copies(shared.slopes, slopes, SLAB / 2);
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        float sums[4][8][4];
#pragma unroll
        for (int i = 0; i < 4 * 8 * 4; i++) sums[i / 32][i / 4 % 8][i % 4] = 0;
#pragma unroll 1
        for (int slab = 0; slab < SLABS; slab++) {
            machine::wait_for_copies();
            meet();
            if (slab == 0)
                for (int first = 0; first < AHEAD; first += 8) fetch_ahead(learner, place, half, first);
            add_second_gradient(shared, place, sums);
            meet();
            int next = half * SLABS + slab + 1;  // of the slabs of both halves
            if (next == 2 * SLABS) continue;
            if (SLABS > 1) begin_copies(shared.matrix, units + next % SLABS * SLAB, SLAB);
            begin_copies(shared.slopes, slopes + next * (SLAB / 2), SLAB / 2);
        }
        move_half(learner, place, half, sums);
    }
    meet();
}

}  // namespace sac
