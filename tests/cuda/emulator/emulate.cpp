// The kernel as a function for ctypes: blocks one after the other, threads as machine.cuh says.
#include "train.cu"

float4 memory[sizeof(Shared) / sizeof(float4) + 1];

namespace {
Launch launched;
}

extern "C" int scratch_words(int most_rows) { return most_rows * SCRATCH_ROW + 2 * MOMENT_WORDS; }
extern "C" int launch_bytes() { return sizeof(Launch); }
extern "C" int run_bytes() { return sizeof(Run); }
extern "C" int position_bytes() { return sizeof(Position); }
extern "C" int state_words() { return STATE_WORDS; }
extern "C" int record_words() { return RECORD_WORDS; }
extern "C" int report_words() { return REPORT_WORDS; }
extern "C" int row_words() { return INPUTS; }
extern "C" int aside_words() { return ASIDE; }

template <class... Worlds>
const char* name_of(int number, Tasks<Worlds...>) {
    const char* names[] = {Worlds::NAME...};
    return names[number];
}
template <class... Worlds>
int count_of(Tasks<Worlds...>) {
    return sizeof...(Worlds);
}
extern "C" int task_count() { return count_of(TASKS); }
extern "C" const char* task_name(int number) { return name_of(number, TASKS); }

extern "C" int emulate(const Launch* launch, int blocks, uint64_t schedule) {
    launched = *launch;
    for (int block = 0; block < blocks; block++) {
        memset(static_cast<void*>(memory), 0xff, sizeof(memory));  // what ran there before may leave what is no number
        if (!machine::run_block(block, THREADS, schedule + block, [] { train(&launched); })) return 1;
    }
    return 0;
}
