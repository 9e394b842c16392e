// The machine of the kernel's machine.cuh on a CPU: each thread is a fiber that runs until it must wait for others. Which
// of those that can run goes next is drawn at random, so that a missing barrier shows as a result that depends on the draw;
// copies arrive no sooner than they are waited for; and a wait that can never end is reported.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#define DEVICE inline
#define DEVICE_APART inline
#define __global__
#define __shared__
#define __launch_bounds__(...)

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
using std::max;
using std::min;

extern float4 memory[];  // the block's shared memory

namespace machine {

constexpr int WARP = 32;
constexpr int WORDS = 12;  // that a lane gives at most in an exchange

struct Waiting {
    int arrived = 0;
    std::vector<int> fibers;
};

struct Fiber {
    std::vector<char> stack;
    ucontext_t start;
    jmp_buf where;
    bool begun = false, ended = false;
    std::vector<std::pair<void*, const void*>> copies;
    int exchanges = 0;
};

struct Block {
    std::vector<Fiber> fibers;
    std::vector<int> ready;
    Waiting barriers[16 + 32];        // 0 to 15 as the kernel names them, 16 and more for warps
    std::vector<float> exchanged;     // [warp][turn][lane][WORDS]
    jmp_buf scheduler;
    int running = 0, number = 0;
    uint64_t draws = 0;
    void (*body)();
};

inline Block* block_now = nullptr;

inline int thread() { return block_now->running; }
inline int block() { return block_now->number; }

inline void leave() {
    Block& block = *block_now;
    if (!_setjmp(block.fibers[block.running].where)) _longjmp(block.scheduler, 1);
}

inline void arrive(int barrier, int count) {
    Block& block = *block_now;
    Waiting& waiting = block.barriers[barrier];
    waiting.fibers.push_back(block.running);
    if (static_cast<int>(waiting.fibers.size()) == count) {
        block.ready.insert(block.ready.end(), waiting.fibers.begin(), waiting.fibers.end());
        waiting.fibers.clear();
    }
    leave();
}

inline void wait_for_block() { arrive(0, static_cast<int>(block_now->fibers.size())); }
inline void wait_for_warp() { arrive(16 + thread() / WARP, WARP); }
inline void wait_for(int barrier, int threads) { arrive(barrier, threads); }

// What each lane of the warp gives, for all of them to read until their exchange after the next.
inline float* exchange(const float* values, int count) {
    Block& block = *block_now;
    int turn = block.fibers[thread()].exchanges++ % 2;
    float* all = &block.exchanged[(thread() / WARP * 2 + turn) * WARP * WORDS];
    std::copy(values, values + count, all + thread() % WARP * WORDS);
    wait_for_warp();
    return all;
}

inline float from_lane(float value, int lane) { return exchange(&value, 1)[lane % WARP * WORDS]; }
inline float from_mirror(float value, int mask) { return exchange(&value, 1)[((thread() ^ mask) % WARP) * WORDS]; }

inline float either(int condition, float yes, float no) { return condition ? yes : no; }

inline int anew(int number) { return number; }

inline int take_ticket(int* counter) { return (*counter)++; }
inline unsigned long long now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000ull + now.tv_nsec;
}

inline void begin_copy(void* shared, const void* global) {
    block_now->fibers[thread()].copies.push_back({shared, global});
}
inline void wait_for_copies() {
    auto& copies = block_now->fibers[thread()].copies;
    for (auto [shared, global] : copies) std::memcpy(shared, global, 16);
    copies.clear();
}

inline unsigned bits_of(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
inline float as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
inline unsigned high_product(unsigned a, unsigned b) { return static_cast<uint64_t>(a) * b >> 32; }
inline float ten_bits(float value) { return as_float(bits_of(value) & 0xffffe000u); }

inline void multiply(float (&sum)[4], const float (&a)[4], const float (&b)[2]) {
    float given[6] = {ten_bits(a[0]), ten_bits(a[1]), ten_bits(a[2]), ten_bits(a[3]), ten_bits(b[0]), ten_bits(b[1])};
    const float* all = exchange(given, 6);
    int g = thread() % WARP / 4, t = thread() % 4;
    for (int i = 0; i < 4; i++) {
        double total = sum[i];
        for (int k = 0; k < 8; k++) {
            const float* left = all + (g * 4 + k / 2) * WORDS;
            const float* right = all + ((2 * t + i % 2) * 4 + k / 2) * WORDS;
            total += static_cast<double>(left[i / 2 * 2 + k % 2]) * right[4 + k % 2];
        }
        sum[i] = static_cast<float>(total);
    }
}

// Halves as IEEE has them, rounded to the nearest and to even; the largest where a number is larger.
inline unsigned half_of(float x) {
    return __builtin_bit_cast(unsigned short, static_cast<_Float16>(std::min(std::max(x, -65504.0f), 65504.0f)));
}
// All of them, once: without instructions for it, a conversion takes longer than all else of a product.
inline const std::vector<float> from_half = [] {
    std::vector<float> all(1 << 16);
    for (unsigned bits = 0; bits < all.size(); bits++)
        all[bits] = static_cast<float>(__builtin_bit_cast(_Float16, static_cast<unsigned short>(bits)));
    return all;
}();
inline unsigned halves(float first, float second) { return half_of(first) | half_of(second) << 16; }
inline float2 from_halves(unsigned both) { return {from_half[both & 0xffff], from_half[both >> 16]}; }

inline void multiply_halves(float (&sum)[4], const unsigned (&a)[4], unsigned b_0, unsigned b_1) {
    float2 given[6] = {from_halves(a[0]), from_halves(a[1]), from_halves(a[2]),
                       from_halves(a[3]), from_halves(b_0),  from_halves(b_1)};
    const float* all = exchange(&given[0].x, 12);
    int g = thread() % WARP / 4, t = thread() % 4;
    for (int i = 0; i < 4; i++) {
        double total = sum[i];
        for (int k = 0; k < 16; k += 2) {
            // Of `a` rows g or g + 8, and columns below 8 or from there on; of `b` rows below 8 or from there on.
            const float* left = all + (g * 4 + k % 8 / 2) * WORDS + 2 * (i / 2 + k / 8 * 2);
            const float* right = all + ((2 * t + i % 2) * 4 + k % 8 / 2) * WORDS + 2 * (4 + k / 8);
            total += static_cast<double>(left[0]) * right[0] + static_cast<double>(left[1]) * right[1];
        }
        sum[i] = static_cast<float>(total);
    }
}

// The row that each lane gives.
struct Rows {
    const float* all;
    const unsigned* operator[](int lane) const {
        const unsigned* row;
        std::memcpy(&row, all + lane * WORDS, sizeof(row));
        return row;
    }
};
inline Rows exchange_rows(const unsigned* row) {
    float given[2];
    std::memcpy(given, &row, sizeof(row));
    return {exchange(given, 2)};
}
inline void load_tiles(unsigned (&tile)[4], const unsigned* row) {
    Rows rows = exchange_rows(row);
    for (int i = 0; i < 4; i++) tile[i] = rows[8 * i + thread() % WARP / 4][thread() % 4];
}
inline void load_tiles_across(unsigned (&tile)[4], const unsigned* row) {
    Rows rows = exchange_rows(row);
    int g = thread() % WARP / 4, t = thread() % 4;
    auto half = [&](int i, int r) { return rows[8 * i + r][g / 2] >> (g % 2 * 16) & 0xffff; };
    for (int i = 0; i < 4; i++) tile[i] = half(i, 2 * t) | half(i, 2 * t + 1) << 16;
}

inline float4 read_once(const float4* place) { return *place; }
inline void write_once(float4* place, float4 numbers) { *place = numbers; }
inline float4 read_far(const float4* place) { return *place; }
inline void write_far(float4* place, float4 numbers) { *place = numbers; }
inline void fetch_ahead(const void*) {}

inline float exp2_of(float x) { return std::exp2(x); }
inline float log2_of(float x) { return std::log2(x); }
inline float inverse_of(float x) { return 1 / x; }
inline float root_of(float x) { return std::sqrt(x); }
inline float sine_of(float x) { return std::sin(x); }
inline float cosine_of(float x) { return std::cos(x); }
inline float rounded(float x) { return std::rint(x); }

inline void begin_fiber() {
    Block& block = *block_now;
    block.body();
    block.fibers[block.running].ended = true;
    _longjmp(block.scheduler, 1);
}

// One of those that can run, drawn by a small generator of its own.
inline int draw(Block& block) {
    block.draws = block.draws * 6364136223846793005ull + 1442695040888963407ull;
    size_t index = (block.draws >> 33) % block.ready.size();
    std::swap(block.ready[index], block.ready.back());
    int chosen = block.ready.back();
    block.ready.pop_back();
    return chosen;
}

// Run a block's threads to their end; false, and a word about who waits, if they wait for one another for ever.
inline bool run_block(int number, int threads, uint64_t schedule, void (*body)()) {
    Block block;
    block.fibers.resize(threads);
    block.exchanged.resize(threads / WARP * 2 * WARP * WORDS);
    block.number = number, block.draws = schedule, block.body = body;
    block_now = &block;
    for (int i = 0; i < threads; i++) {
        Fiber& fiber = block.fibers[i];
        fiber.stack.resize(1 << 17);
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack.data();
        fiber.start.uc_stack.ss_size = fiber.stack.size();
        makecontext(&fiber.start, begin_fiber, 0);
        block.ready.push_back(i);
    }
    while (!block.ready.empty()) {
        block.running = draw(block);
        Fiber& fiber = block.fibers[block.running];
        if (_setjmp(block.scheduler)) continue;
        if (fiber.begun) _longjmp(fiber.where, 1);
        fiber.begun = true;
        setcontext(&fiber.start);
    }
    int left = 0;
    for (Fiber& fiber : block.fibers) left += !fiber.ended;
    for (int name = 0; name < 16 + 32; name++)
        if (size_t waiting = block.barriers[name].fibers.size())
            std::fprintf(stderr, "%zu threads wait at barrier %d\n", waiting, name);
    return left == 0;
}

}  // namespace machine
