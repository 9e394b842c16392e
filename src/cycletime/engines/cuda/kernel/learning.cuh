// N epochs of mini-batches over the batch, by both halves of the block at once, each on its network.
#pragma once
#include "update.cuh"

// Mini-batches of more than 64 samples are cut into equal chunks, so that a run's chunks all have about one length. Where
// fewer samples pass the networks at once, a chunk passes in parts: of whole tiles, so that the same samples are summed up
// in the same order, and the sums have the same bits.
DEVICE int chunk_of(const Run& run) {
    int pieces = (run.slice + CHUNK - 1) / CHUNK;
    return (run.slice + pieces - 1) / pieces;
}

// Mini-batches lie one after the other in an epoch's order, and so do their chunks and these chunks' parts: this walks
// through them.
struct Reader {
    float (*samples)[AT_ONCE * INPUTS];
    const float* rows;
    const int* order;
    int buffer = 0;                     // where the next samples go
    int next, chunk_end, slice_end;     // the first place in the order that is not asked for, and what it belongs to

    DEVICE void restart(const Run& run) {
        next = 0;
        slice_end = min(run.slice, run.batch);
        chunk_end = min(chunk_of(run), slice_end);
    }

    // Ask for the next samples, the last of which is repeated to fill the tiles; how many there are.
    DEVICE int ask(const Run& run, const Place& place) {
        int count = min(AT_ONCE, chunk_end - next);
        for (int i = place.thread; i < AT_ONCE * INPUTS / 4; i += HALF) {
            int sample = i / 4, row = order[next + min(sample, count - 1)];
            if (sample < (count + 7) / 8 * 8)
                machine::begin_copy(&samples[buffer][at_sample(sample, i % 4 * 4)], &rows[row * INPUTS + i % 4 * 4]);
        }
        buffer ^= 1;
        next += count;
        if (next == slice_end) slice_end = min(slice_end + run.slice, run.batch);
        if (next == chunk_end) chunk_end = min(chunk_end + chunk_of(run), slice_end);
        return count;
    }
};

template <int TILES>
DEVICE void learn_epoch(Network& network, const Run& run, Reader& reader, const Place& place, double& mean_decay,
                        double& square_decay) {
    reader.restart(run);
    int count = reader.ask(run, place);
    machine::wait_for_copies();
    place.wait();
    for (int start = 0; start < run.batch;) {
        int slice = min(run.slice, run.batch - start), end = start + slice;
        float share = 1.0f / slice;
        Gradient gradient;
        gradient.reset();
        while (start < end) {
            int passing = count;
            start += passing;
            const float* samples = reader.samples[reader.buffer ^ 1];
            add_gradient<TILES>(network, run, samples, passing, share, place, gradient, [&] {
                if (start < run.batch) count = reader.ask(run, place);
            });
        }
        mean_decay *= 0.9;
        square_decay *= 0.999;
        step_down(network, place, gradient, Rates::of(run.learning_rate, mean_decay, square_decay));
    }
    place.wait();
}

// A function of its own for each number of tiles, so that none takes another's registers.
template <int TILES>
DEVICE_APART void learn_in(Shared& shared, const Run& run, Scratch scratch) {
    Place place = Place::here();
    Network& network = shared.network[place.network];
    double mean_decay = shared.position.mean_decay, square_decay = shared.position.square_decay;
    int* order = scratch.orders + place.network * run.batch;
    Reader reader = {network.samples, scratch.rows, order};
    for (int epoch = 0; epoch < run.epochs; epoch++) {
        Order shuffled = Order::of(run.seed, shared.position.period, epoch, run.batch);
        for (int i = place.thread; i < run.batch; i += HALF) order[i] = shuffled(i);
        place.wait();
        learn_epoch<TILES>(network, run, reader, place, mean_decay, square_decay);
    }
    machine::wait_for_block();
    if (machine::thread() == 0) {
        shared.position.mean_decay = mean_decay;
        shared.position.square_decay = square_decay;
        shared.position.period++;
    }
    machine::wait_for_block();
}

DEVICE void learn(Shared& shared, const Run& run, const Scratch& scratch) {
    int tiles = (chunk_of(run) + 7) / 8;
    if (tiles <= 2) return learn_in<2>(shared, run, scratch);
    if (tiles <= 4 || AT_ONCE == 32) return learn_in<4>(shared, run, scratch);
    if constexpr (AT_ONCE > 32) {
        if (tiles <= 5) return learn_in<5>(shared, run, scratch);
        if (tiles <= 7) return learn_in<7>(shared, run, scratch);
        learn_in<8>(shared, run, scratch);
    }
}
