// What the host and SAC's kernel agree on; cycletime/engines/cuda/sac/layout.py says the same in NumPy.
#pragma once
#include "../layout.cuh"

namespace sac {

constexpr int UNITS = 256;    // of a hidden layer
constexpr int SAMPLES = 256;  // of a gradient step, one for each thread
constexpr int WARPS = THREADS / 32;
constexpr int OUTPUTS = 4;    // of a network: means and log sigmas, or a value and three that are not used
constexpr int ROW_WORDS = 24;
// A row of the replay: what a critic sees (the observation, a one, the action), then what came of it.
constexpr int SEEN = 0, ONE = 9, ACTION = 10, NEXT_SEEN = 12, REWARD = 21, GOES_ON = 22;

// A run as the host describes it: 32 words.
struct Run {
    int task;
    int cycle_steps;        // k
    int limit_steps;        // of an episode, in environment steps
    int env_steps;          // the budget
    int actions;
    int capacity;           // rows of the replay
    int period;             // agent steps from one learning to the next
    int gradient_steps;     // of one learning
    int warmup_steps;       // agent steps with uniform actions
    int learns_from;        // stored rows
    int limit_is_terminal;  // whether nothing follows an episode that the time limit ended
    int metrics_every;      // learnings, from one that is reported to the next
    int most_episodes;      // that can end between two learnings
    unsigned seed;
    float discount;
    float learning_rate;
    float target_smoothing;
    float critic_weight;    // the factor of the squared errors
    float target_entropy;
    float env_dt_s;         // the task's time step
    float* state;           // STATE_WORDS
    float* replay;          // [capacity][ROW_WORDS]
    int unused[8];
};

// The numbers of one network, in the order in which they are kept. Those of the two matrices lie as the threads hold them
// that compute their gradients: four of a thread side by side, those of a warp's lanes one after the other.
constexpr int SECOND = 0;                              // [half][warp][4][8][lane][4], see SecondPlace
constexpr int FIRST = SECOND + UNITS * UNITS;          // [quarter][warp][lane][4], see FirstPlace; inputs and bias
constexpr int SECOND_BIAS = FIRST + INPUTS * UNITS;    // [256]
constexpr int LAST = SECOND_BIAS + UNITS;              // [256][4]
constexpr int LAST_BIAS = LAST + UNITS * OUTPUTS;      // [4]
constexpr int NUMBERS = LAST_BIAS + OUTPUTS;

enum Network { POLICY = 0, CRITIC = 1, OTHER_CRITIC = 2, TARGET = 3, OTHER_TARGET = 4, NETWORKS = 5 };

// A run's state: its position, weights of all five networks, then means and squares of those that learn.
constexpr int STATE_WORDS = POSITION_WORDS + 11 * NUMBERS;
DEVICE float* weights_of(float* state, int network) { return state + POSITION_WORDS + network * NUMBERS; }
DEVICE float* means_of(float* state, int network) { return weights_of(state, NETWORKS + network); }
DEVICE float* squares_of(float* state, int network) { return weights_of(state, NETWORKS + 3 + network); }

// Matrices of halves lie in tiles of 8 x 8, each 32 words in the order of the lanes that hold it, row after row of tiles.
constexpr int TILE = 32;
constexpr int ACROSS = UNITS / 8;                      // tiles beside each other
constexpr int MATRIX = UNITS * UNITS / 2;              // words
constexpr int FIRST_MATRIX = INPUTS * UNITS / 2;

// A block's own memory, in words: both layers' weights of all networks as halves, and what is kept between products.
constexpr int COPY = MATRIX + FIRST_MATRIX;
constexpr int HIDDEN_UNITS = NETWORKS * COPY;          // [sample][unit]: what the first layer gives
constexpr int SLOPES = HIDDEN_UNITS + MATRIX;          // [half][sample][128]: how the loss changes with the second's sums
constexpr int KEPT_UNITS = SLOPES + MATRIX;            // what the policy's second layer gives, as its threads hold it
constexpr int KEPT_SIGNS = KEPT_UNITS + MATRIX;        // which of its first layer's units are above zero
constexpr int FAR_SUMS = KEPT_SIGNS + 2 * 4 * THREADS;   // memory.cuh's Sums, where shared memory is scarce
constexpr int SUM_WORDS = (1 + OUTPUTS) * WARPS * UNITS;
constexpr int SCRATCH_WORDS = FAR_SUMS + SUM_WORDS;

}  // namespace sac
