// Whole SAC runs on the GPU: a block takes a run from the queue, acts and learns until the run is finished or the launch's
// time is over, and takes the next. A run's state and replay stay in device memory between launches.
#include <machine.cuh>
#include "layout.cuh"
#include "tasks.cuh"
#include "sac/acting.cuh"

using sac::Shared;

struct Launch {
    const sac::Run* runs;   // in the order in which they are taken
    int queued;
    int* tickets;
    float* records;         // [run][most_records][RECORD_WORDS]
    int most_records;
    float* reports;         // [run][most_reports][REPORT_WORDS]
    int most_reports;
    unsigned* scratch;      // [block][SCRATCH_WORDS]
    long long time_ns;      // after which blocks stop at the next learning's end
    int most_periods;       // after which a block leaves its run, or 0
};

// The weights of both matrices as halves, of all networks.
DEVICE_APART void copy_weights(Shared& shared, unsigned* scratch) {
    using namespace sac;
    Place place = Place::here();
    for (int network = 0; network < NETWORKS; network++) {
        const float* weights = weights_of(shared.run.state, network);
        unsigned* copy = scratch + network * COPY;
        for (int i = 0; i < 64; i++) {
            SecondPlace at(place, i / 32, i / 8 % 4, i % 8);
            Moving<false>::put_halves(copy, at.words, Moving<false>::four(weights, at.number));
        }
        for (int quarter = 0; quarter < 4; quarter++) {
            FirstPlace at(place, quarter);
            Moving<false>::put_halves(copy + MATRIX, at.words, Moving<false>::four(weights, at.number));
        }
    }
}

DEVICE void load_run(Shared& shared, const sac::Run& run, unsigned* scratch) {
    sac::meet();
    if (machine::thread() == 0) shared.run = run;
    sac::meet();
    int* kept = reinterpret_cast<int*>(&shared.position);
    if (machine::thread() < POSITION_WORDS)
        kept[machine::thread()] = reinterpret_cast<int*>(shared.run.state)[machine::thread()];
    copy_weights(shared, scratch);
    sac::meet();
    if (machine::thread() == 0) shared.position.records = shared.position.reports = 0;
    sac::meet();
    if (machine::thread() < 32)
        with_task(shared.run.task, [&](auto task) { sac::look<typename decltype(task)::Task>(shared); }, TASKS);
    sac::meet();
}

DEVICE void save_run(Shared& shared) {
    int* kept = reinterpret_cast<int*>(&shared.position);
    if (machine::thread() < POSITION_WORDS)
        reinterpret_cast<int*>(shared.run.state)[machine::thread()] = kept[machine::thread()];
    sac::meet();
}

DEVICE void report(Shared& shared, const sac::Told& told, float* written) {
    if (machine::thread() != 0) return;
    written[0] = machine::as_float(shared.position.agent_steps);
    written[1] = told.critics_loss, written[2] = told.policy_loss, written[3] = told.entropy;
    written[4] = told.alpha, written[5] = told.action_value, written[6] = written[7] = 0;
    shared.position.reports++;
}

// One learning period: some agent steps, then some gradient steps where enough is stored.
DEVICE void go_on(Shared& shared, unsigned* scratch, float* records, float* reports) {
    const sac::Run& run = shared.run;
    for (int i = 0; i < run.period; i++) {
        sac::load_network<sac::OUTPUTS>(shared, scratch, run.state, sac::POLICY);
        sac::act(shared);
        if (machine::thread() < 32)
            with_task(run.task, [&](auto task) { sac::step<typename decltype(task)::Task>(shared, records); }, TASKS);
        sac::meet();
    }
    bool learns = shared.position.agent_steps >= run.learns_from;
    sac::Told told;
    for (int i = 0; learns && i < run.gradient_steps; i++) {
        if (i > 0) sac::load_network<sac::OUTPUTS>(shared, scratch, run.state, sac::POLICY);
        told = sac::update(shared, scratch);
    }
    int period = shared.position.period;
    sac::meet();
    if (learns && period % run.metrics_every == 0)
        report(shared, told, reports + shared.position.reports * REPORT_WORDS);
    if (machine::thread() == 0) shared.position.period++;
    sac::meet();
}

// Whether to leave the run: it is finished, has no room for more records, or the launch's time is over.
DEVICE bool is_over(Shared& shared, const Launch& launch, int periods) {
    if (machine::thread() == 0) {
        Position& position = shared.position;
        const sac::Run& run = shared.run;
        if (position.ended_env_steps + position.world_steps >= run.env_steps) position.status = FINISHED;
        bool late = machine::now_ns() - shared.began_ns > static_cast<unsigned long long>(launch.time_ns);
        bool enough = launch.most_periods > 0 && periods >= launch.most_periods;
        bool full = position.records + run.most_episodes > launch.most_records ||
                    position.reports >= launch.most_reports;
        shared.stop = position.status == FINISHED || late || enough || full;
    }
    sac::meet();
    bool over = shared.stop;
    sac::meet();
    return over;
}

// Blocks that began together would ask for the same memory at the same time, step by step: let them begin one after another.
DEVICE void wait_for_turn(unsigned long long began_ns) {
    const unsigned long long APART_NS = 4000;
    while (machine::now_ns() - began_ns < machine::block() * APART_NS) continue;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) train(const Launch* given) {
    const Launch launch = *given;
    extern __shared__ float4 memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    unsigned* scratch = launch.scratch + static_cast<long long>(machine::block()) * sac::SCRATCH_WORDS;
    if (machine::thread() == 0) {
        shared.began_ns = machine::now_ns();
        shared.far_sums = reinterpret_cast<float*>(scratch + sac::FAR_SUMS);
        wait_for_turn(shared.began_ns);
    }
    while (true) {
        sac::meet();
        if (machine::thread() == 0) {
            bool late = machine::now_ns() - shared.began_ns > static_cast<unsigned long long>(launch.time_ns);
            shared.ticket = late ? launch.queued : machine::take_ticket(launch.tickets);
        }
        sac::meet();
        long long ticket = shared.ticket;
        if (ticket >= launch.queued) return;
        float* records = launch.records + ticket * launch.most_records * RECORD_WORDS;
        float* reports = launch.reports + ticket * launch.most_reports * REPORT_WORDS;
        load_run(shared, launch.runs[ticket], scratch);
        int periods = 0;
        do go_on(shared, scratch, records, reports);
        while (!is_over(shared, launch, ++periods));
        save_run(shared);
    }
}
