// What PPO's kernel is given, and where the numbers of its networks lie. Plain data and C alone: the kernel is compiled
// for several instruction sets, and an inline function that two of them share would be linked in from any one.
#pragma once

namespace cycletime {

// Floats to which rows are padded with zeros, so that whole vectors of any instruction set can be read.
constexpr long PADDING = 16;
// Samples that go through the networks at a time, so that what they leave behind stays in the nearest cache.
constexpr int BLOCK = 64;

constexpr long padded(long count) { return (count + PADDING - 1) / PADDING * PADDING; }

// A dense layer. Hidden ones have a row for each input, the last one a row for each output.
struct Layer {
  int inputs, outputs;
  bool last;
  long stride;            // floats from one row to the next
  long weight, bias;      // where they begin among the parameters
  long transposed;        // where a hidden layer's transposed weights begin, for those that are not the first
};

struct Network {
  int layers;
  const Layer* layer;
};

// One learning: so many epochs of mini-batches over a batch.
struct Learning {
  int observation, action, epochs, batch, minibatch;
  float clip;
  Network policy, value;
  long log_std;           // where it begins among the parameters
  long numbers;           // the parameters, padded
  long transposed;        // the transposed weights
  long widest;            // the longest row
  const float* rows;      // by sample: observation, action, advantage, lambda-return, old log-probability
  const int* order;       // by epoch, the samples in the order in which they are used
  const float* scales;    // by gradient step, Adam's two scales
};

// All that learning changes, in the layout above, each array of `numbers` floats.
struct State {
  float *parameter, *mean, *square;
};

// The floats that it needs to work in; where it is given none, it does nothing else but to tell.
typedef long Learn(const Learning&, const State&, float* scratch);
Learn learn_baseline;
#ifdef __x86_64__
Learn learn_avx2, learn_avx512;
#endif

}  // namespace cycletime
