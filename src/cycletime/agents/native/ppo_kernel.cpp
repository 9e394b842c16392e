// PPO's gradient steps as in agents/ppo.py: forward, the loss's slope, backward, Adam; in float32, on one core.
//
// Compiled once for each instruction set, with LEARN as the name of what it gives. Sums are taken in another order by
// each, so that their results differ in the last bits, as XLA's do from processor to processor.
#include "ppo_kernel.hpp"

#include <string.h>

#include "ppo_products.hpp"

namespace cycletime {
namespace {

constexpr float MEAN_DECAY = 0.9, MEAN_SHARE = 1 - 0.9, SQUARE_DECAY = 0.999, SQUARE_SHARE = 1 - 0.999, EPSILON = 1e-8;
constexpr float LOG_SQRT_2_PI = 0.918938533204672742;

// Takes parts of the scratch memory, filled with zeros; without any it only counts.
struct Shelf {
  float* scratch;
  long taken;

  float* take(long count) {
    float* part = scratch ? scratch + taken : nullptr;
    if (part) memset(part, 0, sizeof(float) * padded(count));
    taken += padded(count);
    return part;
  }
};

class Learner {
 public:
  Learner(const Learning& learning, const State& state, float* scratch)
      : to_do(learning), parameter(state.parameter), mean(state.mean), square(state.square) {
    Shelf shelf{scratch, 0};
    gradient = shelf.take(to_do.numbers);
    transposed = shelf.take(to_do.transposed);
    zeros = shelf.take(to_do.widest);
    observations = shelf.take(BLOCK * padded(to_do.observation));
    activations = shelf.take((to_do.policy.layers - 1L) * BLOCK * to_do.widest);
    for (float*& slope : slopes) slope = shelf.take(BLOCK * to_do.widest);
    outputs = shelf.take(BLOCK * to_do.action);
    output_slopes = shelf.take(BLOCK * to_do.action);
    away = shelf.take(BLOCK * to_do.action);
    inverse_std = shelf.take(to_do.action);
    ratios = shelf.take(BLOCK);
    scratch_floats = shelf.taken;
  }

  void step(const int* samples, int count, float scale, float whiten) {
    memset(gradient, 0, sizeof(float) * to_do.numbers);
    transpose_weights(to_do.policy);
    transpose_weights(to_do.value);
    for (int a = 0; a < to_do.action; ++a) inverse_std[a] = exp_of(all(-parameter[to_do.log_std + a]))[0];
    for (int first = 0; first < count; first += BLOCK)
      learn_from(samples + first, count - first < BLOCK ? count - first : BLOCK, 1.0f / count);
    descend(scale, whiten);
  }

  long scratch_floats;

 private:
  // The gradient of some samples' losses, each of which counts as `share`.
  void learn_from(const int* samples, int count, float share) {
    const float* row[BLOCK];
    const long numbers = to_do.observation + to_do.action + 3;
    for (int s = 0; s < count; ++s) {
      row[s] = to_do.rows + samples[s] * numbers;
      memcpy(observations + s * padded(to_do.observation), row[s], sizeof(float) * to_do.observation);
    }
    forward(to_do.policy, count);
    policy_slopes(row, count, share);
    backward(to_do.policy, count);
    forward(to_do.value, count);
    const int lambda_return = to_do.observation + to_do.action + 1;
    for (int s = 0; s < count; ++s) output_slopes[s] = 2 * share * (outputs[s] - row[s][lambda_return]);
    backward(to_do.value, count);
  }

  // Of -min(rho h~, rho_clip h~) by the policy's means and log_std.
  void policy_slopes(const float* const* row, int count, float share) {
    const int actions = to_do.action, first = to_do.observation;
    const float *log_std = parameter + to_do.log_std, least = 1 - to_do.clip, most = 1 + to_do.clip;
    for (int s = 0; s < count; ++s) {
      float log_probability = 0;
      for (int a = 0; a < actions; ++a) {
        const float z = (row[s][first + a] - outputs[s * actions + a]) * inverse_std[a];
        log_probability += -0.5f * z * z - log_std[a] - LOG_SQRT_2_PI;
        away[s * actions + a] = z;
      }
      ratios[s] = log_probability - row[s][first + actions + 2];
    }
    for (int s = 0; s < count; s += WIDTH) store(ratios + s, exp_of(load(ratios + s)));
    for (int s = 0; s < count; ++s) {
      const float ratio = ratios[s], advantage = row[s][first + actions];
      const float clipped = ratio > most ? most : ratio < least ? least : ratio;
      // A factor rather than a choice, so that what is not finite is not hidden.
      const float counts = clipped * advantage < ratio * advantage ? 0.0f : 1.0f;
      const float slope = -share * counts * advantage * ratio;
      for (int a = 0; a < actions; ++a) {
        const float z = away[s * actions + a];
        output_slopes[s * actions + a] = slope * z * inverse_std[a];
        gradient[to_do.log_std + a] += slope * (z * z - 1);
      }
    }
  }

  float* hidden(int layer) { return activations + layer * BLOCK * to_do.widest; }

  // What a layer sees of each sample, a row each.
  Matrix seen_by(const Network& network, int layer) {
    if (layer == 0) return {observations, padded(to_do.observation), 1};
    return {hidden(layer - 1), network.layer[layer - 1].stride, 1};
  }

  void forward(const Network& network, int count) {
    const int last = network.layers - 1;
    for (int l = 0; l < last; ++l) {
      const Layer& layer = network.layer[l];
      product(count, layer.stride, layer.inputs, seen_by(network, l), {parameter + layer.weight, layer.stride, 1},
              {parameter + layer.bias, 0, 1}, {hidden(l), layer.stride});
      float* const numbers = hidden(l);
      const long end = count * layer.stride;
      for (long i = 0; i < end; i += WIDTH) store(numbers + i, tanh_of(load(numbers + i)));
    }
    const Layer& layer = network.layer[last];
    const Matrix seen = seen_by(network, last);
    const long stride = layer.stride;
    for (int s = 0; s < count; ++s)
      for (int o = 0; o < layer.outputs; ++o) {
        const float *inputs = seen.at + s * seen.down, *weights = parameter + layer.weight + o * stride;
        Floats sum{};
        for (long i = 0; i < stride; i += WIDTH) sum += load(inputs + i) * load(weights + i);
        outputs[s * layer.outputs + o] = sum_of(sum) + parameter[layer.bias + o];
      }
  }

  void backward(const Network& network, int count) {
    int l = network.layers - 1;
    const Layer& last = network.layer[l];
    const Matrix slope{output_slopes, last.outputs, 1};
    float* weights = gradient + last.weight;
    product(last.outputs, last.stride, count, {output_slopes, 1, last.outputs}, seen_by(network, l),
            {weights, last.stride, 1}, {weights, last.stride});
    for (int s = 0; s < count; ++s)
      for (int o = 0; o < last.outputs; ++o) gradient[last.bias + o] += output_slopes[s * last.outputs + o];
    if (l == 0) return;
    float *now = slopes[0], *next = slopes[1];
    product(count, last.stride, last.outputs, slope, {parameter + last.weight, last.stride, 1}, {zeros, 0, 1},
            {now, last.stride});
    while (l-- > 0) {
      through_tanh(network.layer[l], hidden(l), now, count);
      through_layer(network, l, now, next, count);
      float* before = now;
      now = next;
      next = before;
    }
  }

  // Slopes by what went into tanh, from those by what came out; and those of the biases.
  void through_tanh(const Layer& layer, const float* came_out, float* slope, int count) {
    const long stride = layer.stride;
    for (long i = 0; i < stride; i += WIDTH) {
      Floats sum = load(gradient + layer.bias + i);
      for (int s = 0; s < count; ++s) {
        const long at = s * stride + i;
        const Floats y = load(came_out + at), before = load(slope + at), after = before - before * (y * y);
        store(slope + at, after);
        sum += after;
      }
      store(gradient + layer.bias + i, sum);
    }
  }

  // Slopes of a hidden layer's weights, and unless it is the first those by what it sees.
  void through_layer(const Network& network, int l, const float* slope, float* seen_slope, int count) {
    const Layer& layer = network.layer[l];
    const Matrix seen = seen_by(network, l);
    float* weights = gradient + layer.weight;
    product(layer.inputs, layer.stride, count, {seen.at, 1, seen.down}, {slope, layer.stride, 1},
            {weights, layer.stride, 1}, {weights, layer.stride});
    if (l > 0)
      product(count, seen.down, layer.outputs, {slope, layer.stride, 1}, {transposed + layer.transposed, seen.down, 1},
              {zeros, 0, 1}, {seen_slope, seen.down});
  }

  void transpose_weights(const Network& network) {
    for (int l = 1; l < network.layers - 1; ++l) {
      const Layer& layer = network.layer[l];
      const long down = network.layer[l - 1].stride;
      transpose(down, layer.stride, {parameter + layer.weight, layer.stride, 1}, {transposed + layer.transposed, down});
    }
  }

  // Adam, as in agents/learning.py.
  void descend(float scale, float whiten) {
    float *__restrict p = parameter, *__restrict m = mean, *__restrict v = square;
    const float* __restrict g = gradient;
    for (long i = 0; i < to_do.numbers; ++i) {
      m[i] = MEAN_DECAY * m[i] + MEAN_SHARE * g[i];
      v[i] = SQUARE_DECAY * v[i] + SQUARE_SHARE * (g[i] * g[i]);
      p[i] -= scale * m[i] / (__builtin_sqrtf(v[i]) * whiten + EPSILON);
    }
  }

  const Learning& to_do;
  float *parameter, *mean, *square;
  float *gradient, *transposed, *zeros, *observations, *activations, *slopes[2];
  float *outputs, *output_slopes, *away, *inverse_std, *ratios;
};

}  // namespace

long LEARN(const Learning& learning, const State& state, float* scratch) {
  Learner learner(learning, state, scratch);
  if (!scratch) return learner.scratch_floats;
  const float* scales = learning.scales;
  for (long epoch = 0; epoch < learning.epochs; ++epoch)
    for (int first = 0; first < learning.batch; first += learning.minibatch, scales += 2) {
      const int left = learning.batch - first, count = left < learning.minibatch ? left : learning.minibatch;
      learner.step(learning.order + epoch * learning.batch + first, count, scales[0], scales[1]);
    }
  return learner.scratch_floats;
}

}  // namespace cycletime
