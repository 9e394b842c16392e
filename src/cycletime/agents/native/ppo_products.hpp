// Products of matrices, and the functions of vectors that PPO's kernel needs, for the instruction set that is compiled.
// All of it is in an unnamed namespace: each instruction set has its own.
#pragma once

namespace {

#if defined(__AVX512F__)
constexpr int WIDTH = 16, VECTORS = 4;
#elif defined(__AVX__)
constexpr int WIDTH = 8, VECTORS = 2;
#else
constexpr int WIDTH = 4, VECTORS = 2;
#endif

typedef float Floats __attribute__((vector_size(4 * WIDTH), may_alias));
typedef int Ints __attribute__((vector_size(4 * WIDTH)));
typedef float Four __attribute__((vector_size(16), may_alias));

inline Floats load(const float* from) { return *reinterpret_cast<const Floats*>(from); }
inline void store(float* to, Floats numbers) { *reinterpret_cast<Floats*>(to) = numbers; }
inline Floats all(float number) { return number - Floats{}; }
inline Four load_four(const float* from) { return *reinterpret_cast<const Four*>(from); }
inline void store_four(float* to, Four numbers) { *reinterpret_cast<Four*>(to) = numbers; }

// A comparison with NaN is false, so that NaN stays what it is.
inline Floats within(Floats x, float least, float most) {
  x = x > most ? all(most) : x;
  return x < least ? all(least) : x;
}

// x P(x^2) / Q(x^2), fitted to tanh with a relative error of 4e-9 up to 7.6, beyond which there are three numbers to 1.
inline Floats tanh_of(Floats x) {
  x = within(x, -7.6f, 7.6f);
  const Floats u = x * x;
  const Floats p = (((0x1.136902p-26f * u + 0x1.77f31p-16f) * u + 0x1.d7fadp-9f) * u + 0x1.13d6eap-3f) * u + 1.0f;
  const Floats q = (((0x1.da0506p-21f * u + 0x1.6ada86p-12f) * u + 0x1.ae7b3ap-6f) * u + 0x1.df40c8p-2f) * u + 1.0f;
  return x * p / q;
}

// 2^n e^r with |r| < log(2) / 2, by e's series; 2^n in two halves, since it can leave the range of float32.
inline Floats exp_of(Floats x) {
  x = within(x, -104.0f, 89.0f);
  const Floats rounder = all(0x1.8p23f);  // added to a small number it leaves a whole one in the lowest bits
  const Floats shifted = x * 0x1.715476p0f + rounder;
  const Ints n = reinterpret_cast<Ints>(shifted) - reinterpret_cast<Ints>(rounder), half = n >> 1;
  const Floats whole = shifted - rounder;
  const Floats r = (x - whole * 0x1.63p-1f) + whole * 0x1.bd0106p-13f;  // log(2) in two parts
  const float series[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f};
  Floats sum = all(1.0f / 5040);
  for (const float term : series) sum = sum * r + term;
  return sum * reinterpret_cast<Floats>((half + 127) << 23) * reinterpret_cast<Floats>((n - half + 127) << 23);
}

inline float sum_of(Floats numbers) {
  Ints lane;
  for (int i = 0; i < WIDTH; ++i) lane[i] = i;
  for (int n = WIDTH / 2; n; n /= 2) numbers += __builtin_shuffle(numbers, lane ^ n);
  return numbers[0];
}

// A matrix of floats; the steps are in floats.
struct Matrix {
  const float* at;
  long down, right;
};

struct Target {
  float* at;
  long down;
};

// R rows and C vectors of start + left x right, all of which stay in registers. A call would pass the matrices through
// memory, which takes a tenth of the time of such small ones.
template <int R, int C>
__attribute__((always_inline)) inline void tile(int depth, Matrix left, Matrix right, Matrix start, Target target) {
  Floats sum[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) sum[r][c] = load(start.at + r * start.down + c * WIDTH);
  for (int k = 0; k < depth; ++k, left.at += left.right, right.at += right.down) {
    Floats factor[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) factor[c] = load(right.at + c * WIDTH);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) sum[r][c] += left.at[r * left.down] * factor[c];
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) store(target.at + r * target.down + c * WIDTH, sum[r][c]);
}

template <int R, int C>
__attribute__((always_inline)) inline int tiles(int row, int rows, int depth, Matrix left, Matrix right, Matrix start,
                                                Target target) {
  for (; row + R <= rows; row += R)
    tile<R, C>(depth, {left.at + row * left.down, left.down, left.right}, right,
               {start.at + row * start.down, start.down, 1}, {target.at + row * target.down, target.down});
  return row;
}

template <int C>
void strip(int rows, int depth, Matrix left, Matrix right, Matrix start, Target target) {
  int row = tiles<4, C>(0, rows, depth, left, right, start, target);
  row = tiles<2, C>(row, rows, depth, left, right, start, target);
  tiles<1, C>(row, rows, depth, left, right, start, target);
}

// target = start + left x right, for `rows` rows and so many columns, a multiple of the padding.
void product(int rows, long columns, int depth, Matrix left, Matrix right, Matrix start, Target target) {
  for (long c = 0; c < columns;) {
    const Matrix from{right.at + c, right.down, 1}, begin{start.at + c, start.down, 1};
    const Target to{target.at + c, target.down};
    if (columns - c >= VECTORS * WIDTH) {
      strip<VECTORS>(rows, depth, left, from, begin, to);
      c += VECTORS * WIDTH;
    } else {
      strip<1>(rows, depth, left, from, begin, to);
      c += WIDTH;
    }
  }
}

// The transposed of a matrix whose sizes are multiples of four.
void transpose(int rows, int columns, Matrix from, Target to) {
  typedef int Lanes __attribute__((vector_size(16)));
  const Lanes low{0, 4, 1, 5}, high{2, 6, 3, 7}, first{0, 1, 4, 5}, second{2, 3, 6, 7};
  for (int r = 0; r < rows; r += 4)
    for (int c = 0; c < columns; c += 4) {
      const float* source = from.at + r * from.down + c;
      const Four row0 = load_four(source), row1 = load_four(source + from.down);
      const Four row2 = load_four(source + 2 * from.down), row3 = load_four(source + 3 * from.down);
      const Four low01 = __builtin_shuffle(row0, row1, low), low23 = __builtin_shuffle(row2, row3, low);
      const Four high01 = __builtin_shuffle(row0, row1, high), high23 = __builtin_shuffle(row2, row3, high);
      float* target = to.at + c * to.down + r;
      store_four(target, __builtin_shuffle(low01, low23, first));
      store_four(target + to.down, __builtin_shuffle(low01, low23, second));
      store_four(target + 2 * to.down, __builtin_shuffle(high01, high23, first));
      store_four(target + 3 * to.down, __builtin_shuffle(high01, high23, second));
    }
}

}  // namespace
