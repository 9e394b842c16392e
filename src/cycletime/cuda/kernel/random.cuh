// Random numbers as functions of the seed, a purpose and a count: Philox 4x32-10 (Salmon et al. 2011).
#pragma once
#include "layout.cuh"
#include <machine.cuh>

struct Words {
    unsigned word[4];
};

DEVICE Words philox(unsigned seed, unsigned purpose, unsigned count, unsigned part) {
    unsigned key[2] = {seed, 0x6379636cu};
    unsigned c[4] = {count, part, purpose, 0};
#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned high_0 = machine::high_product(0xD2511F53u, c[0]), low_0 = 0xD2511F53u * c[0];
        unsigned high_1 = machine::high_product(0xCD9E8D57u, c[2]), low_1 = 0xCD9E8D57u * c[2];
        c[0] = high_1 ^ c[1] ^ key[0];
        c[1] = low_1;
        c[2] = high_0 ^ c[3] ^ key[1];
        c[3] = low_0;
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return {c[0], c[1], c[2], c[3]};
}

// Uniform between -1 and 1, without its ends.
DEVICE float symmetric(unsigned word) { return (static_cast<float>(word >> 9) + 0.5f) * (2.0f / (1 << 23)) - 1.0f; }

// Two independent normal numbers (Box & Muller 1958).
DEVICE void normals(unsigned a, unsigned b, float& first, float& second) {
    float uniform = (static_cast<float>(a >> 8) + 0.5f) * (1.0f / (1 << 24));
    float radius = machine::root_of(fmaxf(0, -1.3862943611f * machine::log2_of(uniform)));  // 0 for log2(1 - tiny) > 0
    float angle = symmetric(b) * 3.14159265359f;
    first = radius * machine::cosine_of(angle);
    second = radius * machine::sine_of(angle);
}

// A random order of the numbers below `length`: a bijection on the next power of two whose keys are random words,
// applied until it falls below. Each round adds a hash of one part of the bits to the other part.
struct Order {
    Words keys;
    unsigned length;
    int low_bits, high_bits;

    DEVICE static Order of(unsigned seed, unsigned period, unsigned epoch, unsigned length) {
        int bits = 0;
        while ((1u << bits) < length) bits++;
        return {philox(seed, LEARNING, period, epoch), length, bits / 2, bits - bits / 2};
    }

    DEVICE unsigned operator()(unsigned place) const {
        unsigned low_mask = (1u << low_bits) - 1, high_mask = (1u << high_bits) - 1;
        do {
            unsigned low = place & low_mask, high = place >> low_bits;
#pragma unroll
            for (int round = 0; round < 8; round += 2) {
                high = (high ^ hashed(low, keys.word[round / 2])) & high_mask;
                low = (low ^ hashed(high, keys.word[round / 2] ^ 0x5bd1e995u)) & low_mask;
            }
            place = (high << low_bits) | low;
        } while (place >= length);
        return place;
    }

    DEVICE static unsigned hashed(unsigned part, unsigned key) {
        unsigned h = (part + key) * 0x9E3779B1u;
        h = (h ^ (h >> 15)) * 0x85EBCA77u;
        h = (h ^ (h >> 13)) * 0xC2B2AE3Du;
        return h ^ (h >> 16);
    }
};
