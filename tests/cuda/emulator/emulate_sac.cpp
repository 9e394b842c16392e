// SAC's kernel as a function for ctypes, as in emulate.cpp.
#include "sac.cu"

float4 memory[sizeof(Shared) / sizeof(float4) + 1];

namespace {
Launch launched;
}

extern "C" int launch_bytes() { return sizeof(Launch); }
extern "C" int run_bytes() { return sizeof(sac::Run); }
extern "C" int state_words() { return sac::STATE_WORDS; }
extern "C" int scratch_words() { return sac::SCRATCH_WORDS; }
extern "C" int row_words() { return sac::ROW_WORDS; }

extern "C" int emulate(const Launch* launch, int blocks, uint64_t schedule) {
    launched = *launch;
    for (int block = 0; block < blocks; block++) {
        memset(static_cast<void*>(memory), 0xff, sizeof(memory));  // what ran there before may leave what is no number
        if (!machine::run_block(block, THREADS, schedule + block, [] { train(&launched); })) return 1;
    }
    return 0;
}
