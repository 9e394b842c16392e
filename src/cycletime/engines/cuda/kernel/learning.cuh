// N epochs of mini-batches over the batch, by both halves of the block at once, each on its network.
#pragma once
#include "update.cuh"

// Mini-batches lie one after the other in an epoch's order, and so do their chunks: this walks through them.
struct Reader {
    float (*samples)[CHUNK * INPUTS];
    const float* rows;
    const int* order;
    int next;    // the first place in the order that is not asked for
    int buffer;  // where the next samples go

    // Ask for so many samples; the last one is repeated to fill the tiles.
    DEVICE void ask(int count, const Place& place) {
        for (int i = place.thread; i < CHUNK * INPUTS / 4; i += HALF) {
            int sample = i / 4, row = order[next + min(sample, count - 1)];
            if (sample < (count + 7) / 8 * 8)
                machine::begin_copy(&samples[buffer][at_sample(sample, i % 4 * 4)], &rows[row * INPUTS + i % 4 * 4]);
        }
        next += count;
        buffer ^= 1;
    }
};

// Mini-batches of more than 64 samples are cut into equal chunks, so that a run's chunks all have about one length.
DEVICE int chunk_of(const Run& run) {
    int pieces = (run.slice + CHUNK - 1) / CHUNK;
    return (run.slice + pieces - 1) / pieces;
}

template <int TILES>
DEVICE void learn_epoch(Network& network, const Run& run, Reader& reader, const Place& place, double& mean_decay,
                        double& square_decay) {
    int chunk = chunk_of(run);
    reader.next = 0;
    reader.ask(min(chunk, run.batch), place);
    machine::wait_for_copies();
    place.wait();
    for (int start = 0; start < run.batch;) {
        int slice = min(run.slice, run.batch - start), end = start + slice;
        float share = 1.0f / slice;
        Gradient gradient;
        gradient.reset();
        while (start < end) {
            int count = min(chunk, end - start);
            const float* samples = reader.samples[reader.buffer ^ 1];
            start += count;
            int slice_end = start < end ? end : min(end + run.slice, run.batch);
            add_gradient<TILES>(network, run, samples, count, share, place, gradient, [&] {
                if (start < run.batch) reader.ask(min(chunk, slice_end - start), place);
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
    Reader reader = {network.samples, scratch.rows, order, 0, 0};
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
    if (tiles <= 2)
        learn_in<2>(shared, run, scratch);
    else if (tiles <= 4)
        learn_in<4>(shared, run, scratch);
    else if (tiles <= 5)
        learn_in<5>(shared, run, scratch);
    else if (tiles <= 7)
        learn_in<7>(shared, run, scratch);
    else
        learn_in<8>(shared, run, scratch);
}
