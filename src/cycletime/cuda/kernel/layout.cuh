// What the host and the kernel agree on; cycletime/engines/cuda/layout.py says the same in NumPy.
#pragma once

constexpr int OBSERVATION = 9;  // the rest of a shorter one is zero
constexpr int ACTIONS = 2;   // a task with one leaves the second alone
constexpr int INPUTS = 16;   // numbers of a batch's row; the network sees the first ten: the observation and a one
constexpr int HIDDEN = 64;
constexpr int THREADS = 256;
constexpr int HALF = 128;    // the threads of one network
constexpr int CHUNK = 64;    // the most samples whose sums are counted together; see learning.cuh

enum Status { FRESH = 0, GOING = 1, FINISHED = 2 };
enum Purpose : unsigned { NOISE = 1, STARTS = 2, LEARNING = 3 };

// A run as the host describes it: 32 words.
struct Run {
    int task;               // its place among TASKS
    int cycle_steps;        // k
    int limit_steps;        // of an episode, in environment steps
    int env_steps;          // the budget
    int actions;
    int batch;              // b
    int slice;              // the samples of a gradient step; the last of an epoch may have fewer
    int epochs;
    int until_episode_end;  // whether it learns at the end of the episode that filled the batch
    int limit_is_terminal;  // whether nothing follows an episode that the time limit ended
    int ends_with_episode;  // whether the batch's last value is that of the episode's last observation
    int metrics_every;      // learnings, from one that is reported to the next
    int most_episodes;      // that can end between two learnings
    unsigned seed;
    float discount;
    float trace_decay;
    float learning_rate;
    float clip;
    float env_dt_s;         // the task's time step
    int unused[13];
};

// Where a run is between two learnings: 64 words.
struct Position {
    int status;
    int period;             // learnings done
    int agent_steps;
    int ended_env_steps;    // of the episodes that ended
    int episode;            // the episodes that ended
    int episode_steps;      // agent steps of the current one
    float episode_return;   // its rewards so far
    int world_steps;        // its environment steps
    float world[12];        // the task's state
    double mean_decay;      // beta_1 and beta_2 to the power of the gradient steps done
    double square_decay;
    int records;            // the episodes recorded in this launch
    int reports;            // the learnings reported in this launch
    int updates;            // SAC's gradient steps
    float temperature[3];   // SAC's log alpha, and Adam's moments of it
    int unused[34];
};

// The numbers of one network, in the order in which they are kept; of the policy and of the value alike.
constexpr int FIRST = 0;                                // [10][64]: inputs and bias
constexpr int SECOND = FIRST + (OBSERVATION + 1) * HIDDEN;  // [64][64]
constexpr int SECOND_BIAS = SECOND + HIDDEN * HIDDEN;   // [64]
constexpr int LAST = SECOND_BIAS + HIDDEN;              // [64][2]
constexpr int LAST_BIAS = LAST + HIDDEN * ACTIONS;      // [2]
constexpr int LOG_STD = LAST_BIAS + ACTIONS;            // [2], unused by the value
constexpr int NUMBERS = LOG_STD + ACTIONS;

// A run's state in device memory: its position, then weights, means and squares, each of the policy and of the value.
constexpr int POSITION_WORDS = 64;
constexpr int STATE_WORDS = POSITION_WORDS + 6 * NUMBERS;
enum Kept { WEIGHTS = 0, MEANS = 1, SQUARES = 2 };
DEVICE float* numbers_of(float* state, Kept kept, int network) {
    return state + POSITION_WORDS + (2 * kept + network) * NUMBERS;
}

// A row of the batch: what the agent saw, a one, what it did, and what learning needs to know.
constexpr int ONE = 9, ACTION = 10, ADVANTAGE = 12, OLD_LOG_PROBABILITY = 13, LAMBDA_RETURN = 14, NEXT_ROW = 15;
// What else is kept of it: its value, its reward, and the policy's means before learning.
constexpr int ASIDE = 4;
constexpr int VALUE = 0, REWARD = 1, OLD_MEAN = 2;
constexpr int ENDED = 1 << 30, TERMINAL = 1 << 29;  // flags in NEXT_ROW, beside the row of the successor

constexpr int RECORD_WORDS = 3;  // return, environment steps, agent steps
constexpr int REPORT_WORDS = 8;  // agent steps, policy loss, value loss, entropy, divergence, clip fraction, log sigmas

// A block's own memory: rows (the batch, its successor, and last observations of episodes), asides, two orders, and the
// second layers' moments of both networks, which lie there in the forms of the kernel for small cards.
struct Scratch {
    float* rows;
    float* asides;
    int* orders;
    float* moments;
};
constexpr int SCRATCH_ROW = INPUTS + ASIDE + 2;
constexpr int MOMENT_WORDS = 2 * HIDDEN * HIDDEN;  // of one network
