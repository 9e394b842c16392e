// The Acrobot, as in cycletime/tasks/acrobot.py.
#pragma once
#include "layout.cuh"
#include "physics.cuh"
#include "random.cuh"

struct Acrobot {
    static constexpr const char* NAME = "acrobot";
    static constexpr double GRAVITY = 9.8, MASS = 1, LENGTH = 1, CENTRE = 0.5, INERTIA = 1;
    static constexpr double COUPLING = MASS * LENGTH * CENTRE, M22 = MASS * CENTRE * CENTRE + INERTIA;
    static constexpr float FASTEST_1 = 12.56637061436f, FASTEST_2 = 28.27433388231f;

    const float dt, share;
    float numbers[4];  // both angles, and their speeds
    int steps;

    DEVICE explicit Acrobot(float env_dt_s) : dt(env_dt_s), share(env_dt_s / 0.2f) {}

    DEVICE void reset(const Words& words) {
#pragma unroll
        for (int i = 0; i < 4; i++) numbers[i] = 0.1f * symmetric(words.word[i]);
        steps = 0;
    }

    DEVICE void load(const Position& position) {
#pragma unroll
        for (int i = 0; i < 4; i++) numbers[i] = position.world[i];
        steps = position.world_steps;
    }

    DEVICE void save(Position& position) const {
#pragma unroll
        for (int i = 0; i < 4; i++) position.world[i] = numbers[i];
        position.world_steps = steps;
    }

    DEVICE void observe(float (&seen)[OBSERVATION]) const {
        SineCosine upper = sine_and_cosine(numbers[0]), lower = sine_and_cosine(numbers[1]);
        see(seen, {upper.cosine, upper.sine, lower.cosine, lower.sine, numbers[2], numbers[3]});
    }

    DEVICE float cycle(const float (&action)[ACTIONS], int cycle_steps, int limit_steps, bool& terminated) {
        float torque = clipped(action[0], -1, 1);
        int first = steps, last = min(steps + cycle_steps, limit_steps);
        while (steps < last && !terminated) {
            runge_kutta(numbers, dt, [=](const float (&at)[4], float (&found)[4]) { slopes(at, torque, found); });
            numbers[0] = within_a_turn(numbers[0]);
            numbers[1] = within_a_turn(numbers[1]);
            numbers[2] = clipped(numbers[2], -FASTEST_1, FASTEST_1);
            numbers[3] = clipped(numbers[3], -FASTEST_2, FASTEST_2);
            terminated = is_above();
            steps++;
        }
        return -share * (steps - first - terminated);
    }

    // Whether the tip is one link above the bar.
    DEVICE bool is_above() const {
        return -machine::cosine_of(numbers[0]) - sine_and_cosine(numbers[0] + numbers[1]).cosine > 1.0f;
    }

    DEVICE static void slopes(const float (&at)[4], float torque, float (&found)[4]) {
        // Of any angle, since a long step goes turns beyond pi.
        SineCosine upper = sine_and_cosine(at[0]), lower = sine_and_cosine(at[1]);
        float w1 = at[2], w2 = at[3], swing = float(COUPLING) * lower.sine;
        float m11 = float(2 * MASS * CENTRE * CENTRE + MASS * LENGTH * LENGTH + 2 * INERTIA) +
                    float(2 * COUPLING) * lower.cosine;
        float m12 = float(M22) + float(COUPLING) * lower.cosine;
        float weight_2 = float(MASS * CENTRE * GRAVITY) * (upper.sine * lower.cosine + upper.cosine * lower.sine);
        float weight_1 = float(MASS * (CENTRE + LENGTH) * GRAVITY) * upper.sine + weight_2;
        float on_upper = weight_1 - swing * w2 * (w2 + 2 * w1), on_lower = torque - swing * w1 * w1 - weight_2;
        float per_det = machine::inverse_of(float(M22) * m11 - m12 * m12);
        found[0] = w1, found[1] = w2;
        found[2] = -(float(M22) * on_upper + m12 * on_lower) * per_det;
        found[3] = (m11 * on_lower + m12 * on_upper) * per_det;
    }
};
