// Whole PPO runs on the GPU: a block takes a run from the queue, acts and learns until the run is finished or the launch's
// time is over, and takes the next. A launch that ends in time leaves each run's state for the next launch.
#include <machine.cuh>
#include "layout.cuh"
#include "memory.cuh"
#include "random.cuh"
#include "tasks.cuh"
#include "rollout.cuh"
#include "forward.cuh"
#include "advantages.cuh"
#include "learning.cuh"

struct Launch {
    const Run* runs;
    const int* queue;       // slots, in the order in which they are taken
    int queued;
    int* tickets;
    float* states;          // [slot][STATE_WORDS]
    float* records;         // [slot][most_records][RECORD_WORDS]
    int most_records;
    float* reports;         // [slot][most_reports][REPORT_WORDS]
    int most_reports;
    float* scratch;         // [block][scratch_words(most_rows)]
    int most_rows;
    long long time_ns;      // after which blocks stop at the next learning's end
    int most_periods;       // after which a block leaves its run, or 0
};

DEVICE Scratch scratch_of(const Launch& launch, int block) {
    long long words = static_cast<long long>(launch.most_rows) * SCRATCH_ROW;
    float* rows = launch.scratch + block * (words + 2 * MOMENT_WORDS);
    float* asides = rows + launch.most_rows * INPUTS;
    return {rows, asides, reinterpret_cast<int*>(asides + launch.most_rows * ASIDE), rows + words};
}

DEVICE void load_run(Shared& shared, const Run& run, const Scratch& scratch, float* state) {
    Place place = Place::here();
    machine::wait_for_block();
    if (place.thread == 0) shared.network[place.network].moments.place(scratch.moments + place.network * MOMENT_WORDS);
    machine::wait_for_block();
    if (machine::thread() == 0) shared.described = run;
    int* kept = reinterpret_cast<int*>(&shared.position);
    if (machine::thread() < POSITION_WORDS) kept[machine::thread()] = reinterpret_cast<int*>(state)[machine::thread()];
    load_network(shared.network[place.network], state, place);
    machine::wait_for_block();
}

DEVICE void save_run(Shared& shared, float* state) {
    Place place = Place::here();
    int* kept = reinterpret_cast<int*>(&shared.position);
    save_network(shared.network[place.network], state, place);
    if (machine::thread() < POSITION_WORDS) reinterpret_cast<int*>(state)[machine::thread()] = kept[machine::thread()];
    machine::wait_for_block();
}

// One learning period: act until the batch is full, then learn from it.
DEVICE void go_on(Shared& shared, const Run& run, const Scratch& scratch, float* records, float* reports) {
    if (machine::thread() < 32) {
        auto act = [&](auto of) { return roll_out<typename decltype(of)::Task>(shared, run, scratch, records); };
        int rows = with_task(run.task, act, TASKS);
        if (machine::thread() == 0) shared.run = rows;
    }
    machine::wait_for_block();
    evaluate(shared, run, scratch, shared.run);
    find_advantages(shared, run, scratch);
    float old_log_std[ACTIONS] = {shared.network[0].weight.log_std[0], shared.network[0].weight.log_std[1]};
    machine::wait_for_block();
    learn(shared, run, scratch);
    if (shared.position.period % run.metrics_every == 0) {
        report(shared, run, scratch, old_log_std, reports + shared.position.reports * REPORT_WORDS);
        if (machine::thread() == 0) shared.position.reports++;
    }
    machine::wait_for_block();
}

// Whether to leave the run: it is finished, has no room for more records, or the launch's time is over.
DEVICE bool is_over(Shared& shared, const Launch& launch, const Run& run, int periods) {
    if (machine::thread() == 0) {
        Position& position = shared.position;
        if (position.ended_env_steps + position.world_steps >= run.env_steps) position.status = FINISHED;
        bool late = machine::now_ns() - shared.began_ns > static_cast<unsigned long long>(launch.time_ns);
        bool enough = launch.most_periods > 0 && periods >= launch.most_periods;
        bool full = position.records + run.most_episodes > launch.most_records ||
                    position.reports >= launch.most_reports;
        shared.stop = position.status == FINISHED || late || enough || full;
    }
    machine::wait_for_block();
    bool over = shared.stop;
    machine::wait_for_block();
    return over;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) train(const Launch* given) {
    const Launch launch = *given;
    extern __shared__ float4 memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    Scratch scratch = scratch_of(launch, machine::block());
    if (machine::thread() == 0) shared.began_ns = machine::now_ns();
    while (true) {
        machine::wait_for_block();
        if (machine::thread() == 0) {
            bool late = machine::now_ns() - shared.began_ns > static_cast<unsigned long long>(launch.time_ns);
            shared.run = late ? launch.queued : machine::take_ticket(launch.tickets);
        }
        machine::wait_for_block();
        int ticket = shared.run;
        if (ticket >= launch.queued) return;
        int slot = launch.queue[ticket];
        const Run& run = shared.described;
        float* state = launch.states + static_cast<long long>(slot) * STATE_WORDS;
        float* records = launch.records + static_cast<long long>(slot) * launch.most_records * RECORD_WORDS;
        float* reports = launch.reports + static_cast<long long>(slot) * launch.most_reports * REPORT_WORDS;
        load_run(shared, launch.runs[slot], scratch, state);
        int periods = 0;
        do go_on(shared, run, scratch, records, reports);
        while (!is_over(shared, launch, run, ++periods));
        save_run(shared, state);
    }
}
