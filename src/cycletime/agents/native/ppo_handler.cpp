// PPO's kernel as a function that programs of JAX call, through XLA's foreign function interface.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "ppo_kernel.hpp"
#include "xla/ffi/api/ffi.h"

namespace cycletime {
namespace {

namespace ffi = xla::ffi;

using Number = ffi::Buffer<ffi::F32, 0>;
using Numbers = ffi::Buffer<ffi::F32, 1>;
using Table = ffi::Buffer<ffi::F32, 2>;
using Orders = ffi::Buffer<ffi::S32, 2>;
using Sizes = ffi::Span<const std::int64_t>;

// Numbers that are too small for float32's usual form are zero, whatever the thread had before: as XLA's own threads.
class FlushToZero {
#ifdef __x86_64__
 public:
  FlushToZero() : before(_mm_getcsr()) { _mm_setcsr(before | 0x8040); }
  ~FlushToZero() { _mm_setcsr(before); }

 private:
  unsigned before;
#endif
};

// The layers of a network, whose numbers follow those that there are already.
std::vector<Layer> layers_of(const std::vector<int>& sizes, Learning& learning) {
  std::vector<Layer> layers;
  for (size_t l = 0; l + 1 < sizes.size(); ++l) {
    Layer layer{sizes[l], sizes[l + 1], l + 2 == sizes.size(), 0, 0, 0, 0};
    layer.stride = padded(layer.last ? layer.inputs : layer.outputs);
    layer.weight = learning.numbers;
    // Rows that are transposed are padded as well.
    learning.numbers += layer.stride * (layer.last ? layer.outputs : l ? padded(layer.inputs) : layer.inputs);
    layer.bias = learning.numbers;
    learning.numbers += padded(layer.outputs);
    layer.transposed = learning.transposed;
    if (l && !layer.last) learning.transposed += padded(layer.inputs) * layer.stride;
    learning.widest = std::max(learning.widest, layer.stride);
    layers.push_back(layer);
  }
  return layers;
}

// Calls `visit` with the place of each parameter, in the order in which JAX flattens them.
template <class Visit>
void each_parameter(const Learning& learning, Visit visit) {
  const auto each_of = [&](const Network& network) {
    for (int l = 0; l < network.layers; ++l) {
      const Layer& layer = network.layer[l];
      for (long i = 0; i < layer.inputs; ++i)
        for (long o = 0; o < layer.outputs; ++o)
          visit(layer.weight + (layer.last ? o * layer.stride + i : i * layer.stride + o));
      for (long o = 0; o < layer.outputs; ++o) visit(layer.bias + o);
    }
  };
  each_of(learning.policy);
  for (long a = 0; a < learning.action; ++a) visit(learning.log_std + a);
  each_of(learning.value);
}

struct Instructions {
  const char* name;
  Learn* learn;
  bool here;
};

// The fastest first.
const std::vector<Instructions>& instruction_sets() {
  static const std::vector<Instructions> all = {
#ifdef __x86_64__
      {"avx512", learn_avx512,
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd")},
      {"avx2", learn_avx2,
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")},
#endif
      {"baseline", learn_baseline, true},
  };
  return all;
}

Learn* learn_with(std::string_view name) {
  for (const Instructions& each : instruction_sets())
    if (each.here && name == each.name) return each.learn;
  return nullptr;
}

ffi::Error learn(Numbers parameter, Numbers mean, Numbers square, Table rows, Orders order, Table scales, Number clip,
                 ffi::Result<Numbers> new_parameter, ffi::Result<Numbers> new_mean, ffi::Result<Numbers> new_square,
                 std::int64_t minibatch, std::int64_t action, Sizes hidden, std::string_view instructions) {
  Learn* const learn = learn_with(instructions);
  if (!learn) return ffi::Error::InvalidArgument("PPO's kernel is not here for " + std::string(instructions) + ".");
  Learning learning{};
  learning.action = action;
  learning.observation = rows.dimensions()[1] - action - 3;
  learning.epochs = order.dimensions()[0];
  learning.batch = order.dimensions()[1];
  learning.minibatch = minibatch;
  learning.clip = *clip.typed_data();
  learning.rows = rows.typed_data();
  learning.order = order.typed_data();
  learning.scales = scales.typed_data();

  std::vector<int> sizes(hidden.begin(), hidden.end());
  sizes.insert(sizes.begin(), learning.observation);
  sizes.push_back(action);
  const std::vector<Layer> policy = layers_of(sizes, learning);
  learning.log_std = learning.numbers;
  learning.numbers += padded(action);
  sizes.back() = 1;
  const std::vector<Layer> value = layers_of(sizes, learning);
  learning.policy = {static_cast<int>(policy.size()), policy.data()};
  learning.value = {static_cast<int>(value.size()), value.data()};

  const long numbers = learning.numbers;
  const long floats = 3 * numbers + learn(learning, {}, nullptr);
  const std::unique_ptr<float, void (*)(void*)> memory(
      static_cast<float*>(std::aligned_alloc(sizeof(float) * PADDING, sizeof(float) * floats)), std::free);
  if (!memory) return ffi::Error(ffi::ErrorCode::kResourceExhausted, "PPO's kernel has no memory to work in.");
  const State state{memory.get(), memory.get() + numbers, memory.get() + 2 * numbers};
  std::fill_n(memory.get(), 3 * numbers, 0.0f);

  long next = 0;
  each_parameter(learning, [&](long place) {
    state.parameter[place] = parameter.typed_data()[next];
    state.mean[place] = mean.typed_data()[next];
    state.square[place] = square.typed_data()[next++];
  });
  {
    const FlushToZero flush;
    learn(learning, state, memory.get() + 3 * numbers);
  }
  next = 0;
  each_parameter(learning, [&](long place) {
    new_parameter->typed_data()[next] = state.parameter[place];
    new_mean->typed_data()[next] = state.mean[place];
    new_square->typed_data()[next++] = state.square[place];
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace cycletime

XLA_FFI_DEFINE_HANDLER_SYMBOL(cycletime_ppo_learn, cycletime::learn,
                              xla::ffi::Ffi::Bind()
                                  .Arg<cycletime::Numbers>()
                                  .Arg<cycletime::Numbers>()
                                  .Arg<cycletime::Numbers>()
                                  .Arg<cycletime::Table>()
                                  .Arg<cycletime::Orders>()
                                  .Arg<cycletime::Table>()
                                  .Arg<cycletime::Number>()
                                  .Ret<cycletime::Numbers>()
                                  .Ret<cycletime::Numbers>()
                                  .Ret<cycletime::Numbers>()
                                  .Attr<std::int64_t>("minibatch")
                                  .Attr<std::int64_t>("action")
                                  .Attr<cycletime::Sizes>("hidden")
                                  .Attr<std::string_view>("instructions"));

// What it was built from and by, and the fastest instruction set here: they decide a run's last bits.
extern "C" const char* cycletime_ppo_build() { return CYCLETIME_SOURCES " by GCC " __VERSION__; }

extern "C" const char* cycletime_ppo_instructions() {
  for (const cycletime::Instructions& each : cycletime::instruction_sets())
    if (each.here) return each.name;
  return "";
}
