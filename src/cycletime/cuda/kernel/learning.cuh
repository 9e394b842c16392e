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
    int chunk;
    int buffer = 0;  // where the next samples go
    int left = 0;    // of the chunk that is being asked for

    // Ask for the samples that follow in a slice, the last of which is repeated to fill the tiles; how many there are. All
    // places are read before any copy begins: a copy keeps later reads behind it, and each would wait for the last.
    DEVICE int ask(int first, int slice_end, const Place& place) {
        if (left == 0) left = min(chunk, slice_end - first);
        int count = min(AT_ONCE, left);
        left -= count;
        constexpr int ROUNDS = AT_ONCE * INPUTS / 4 / HALF;
        int row[ROUNDS], sample = place.thread / 4, quarter = place.thread % 4 * 4;
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) row[i] = order[first + min(sample + i * (HALF / 4), count - 1)];
#pragma unroll
        for (int i = 0; i < ROUNDS; i++)
            if (sample + i * (HALF / 4) < (count + 7) / 8 * 8)
                machine::begin_copy(&samples[buffer][at_sample(sample, quarter) + i * (HALF / 4) * INPUTS],
                                    &rows[row[i] * INPUTS + quarter]);
        buffer ^= 1;
        return count;
    }
};

template <int TILES>
DEVICE void learn_epoch(Network& network, const Run& run, Reader& reader, const Place& place, double& mean_decay,
                        double& square_decay) {
    int count = reader.ask(0, min(run.slice, run.batch), place);
    machine::wait_for_copies();
    place.wait();
    for (int start = 0; start < run.batch;) {
        int end = min(start + run.slice, run.batch);
        float share = 1.0f / (end - start);
        Gradient gradient;
        gradient.reset();
        while (start < end) {
            int passing = count;
            start += passing;
            const float* samples = reader.samples[reader.buffer ^ 1];
            add_gradient<TILES>(network, run, samples, passing, share, gradient, [&] {
                if (start < run.batch)
                    count = reader.ask(start, start < end ? end : min(end + run.slice, run.batch), place);
            });
        }
        mean_decay *= 0.9;
        square_decay *= 0.999;
        step_down(network, gradient, Rates::of(run.learning_rate, mean_decay, square_decay));
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
    Reader reader = {network.samples, scratch.rows, order, chunk_of(run)};
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
