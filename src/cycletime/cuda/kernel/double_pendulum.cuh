// The Double Pendulum Task, as in cycletime/tasks/double_pendulum.py.
#pragma once
#include "layout.cuh"
#include "physics.cuh"
#include "random.cuh"

struct DoublePendulum {
    static constexpr const char* NAME = "double-pendulum";

    float x, lower, upper, v, w, u, late_x, late_y;
    int steps;

    static constexpr double DT = 0.004;
    static constexpr double CART = 10.47197598009977, POLE = 4.198739082051421, INERTIA = 0.217564678634353;
    static constexpr double CENTRE = 0.30000001192092896, LENGTH = 0.6000000238418579, GRAVITY = 9.8;

    DEVICE explicit DoublePendulum(float) {}  // its time step is fixed

    DEVICE void reset(const Words& words) {
        lower = 0.1f * symmetric(words.word[0]);
        upper = 0.1f * symmetric(words.word[1]);
        x = v = w = u = 0;
        steps = 0;
        upper_centre(machine::sine_of(lower), machine::cosine_of(lower), machine::sine_of(lower + upper),
                     machine::cosine_of(lower + upper));
    }

    DEVICE void load(const Position& position) {
        const float* kept = position.world;
        x = kept[0], lower = kept[1], upper = kept[2], v = kept[3], w = kept[4], u = kept[5];
        late_x = kept[6], late_y = kept[7], steps = position.world_steps;
    }

    DEVICE void save(Position& position) const {
        float* kept = position.world;
        kept[0] = x, kept[1] = lower, kept[2] = upper, kept[3] = v, kept[4] = w, kept[5] = u;
        kept[6] = late_x, kept[7] = late_y, position.world_steps = steps;
    }

    DEVICE void observe(float (&seen)[OBSERVATION]) const {
        SineCosine one = sine_and_cosine(lower), between = sine_and_cosine(upper);
        seen[0] = x, seen[1] = v, seen[2] = late_x, seen[3] = one.cosine, seen[4] = one.sine, seen[5] = w;
        seen[6] = between.cosine, seen[7] = between.sine, seen[8] = u;
    }

    DEVICE float cycle(const float (&action)[ACTIONS], int cycle_steps, int limit_steps, bool& terminated) {
        float force = 200.0f * clipped(action[0], -1, 1), reward = 0;
        int last = min(steps + cycle_steps, limit_steps);
        auto advance = [&](const Speeds& next) {
            x += float(DT) * next.v, lower += float(DT) * next.w, upper += float(DT) * next.u;
            v = next.v, w = next.w, u = next.u;
            steps++;
            float height = late_y + 0.3f;
            reward += 10.0f - 0.01f * late_x * late_x - (height - 2.0f) * (height - 2.0f);
        };
        while (steps < last && !terminated) {
            // A loop of its own for steps within the rail's limits, since branches take a good part of a step.
            Speeds next = free_speeds(force);
            while (!is_at_limit() && !is_fallen() && steps + 1 < last) {
                advance(next);
                next = free_speeds(force);
            }
            if (is_at_limit()) push_back(next);
            terminated = is_fallen();
            advance(next);
        }
        return 0.25f * reward;
    }

    DEVICE void upper_centre(float s1, float c1, float s2, float c2) {
        late_x = x + float(LENGTH) * s1 + float(CENTRE) * s2;
        late_y = float(LENGTH) * c1 + float(CENTRE) * c2;
    }

    // The speeds after a step, and what pushing the cart back needs to know.
    struct Speeds {
        float v, w, u, c11, c12, c13, per_det;
    };

    DEVICE bool is_at_limit() const { return fabsf(x) >= 1.0f; }
    DEVICE bool is_fallen() const { return late_y + 0.3f <= 1.0f; }

    // Also where the upper pole is before the step, which is what is seen of it thereafter.
    DEVICE Speeds free_speeds(float force) {
        // A pole that is not fallen stays within half a turn, where the quick sine and cosine are exact enough.
        float s1 = machine::sine_of(lower), c1 = machine::cosine_of(lower), w12 = w + u;
        float s2 = machine::sine_of(lower + upper), c2 = machine::cosine_of(lower + upper);
        SineCosine between = {s2 * c1 - c2 * s1, c1 * c2 + s1 * s2};
        // The mass matrix in (x, lower, lower + upper), its cofactors and its determinant.
        constexpr float a11 = CART + 2 * POLE, a22 = INERTIA + POLE * CENTRE * CENTRE + POLE * LENGTH * LENGTH;
        constexpr float a33 = INERTIA + POLE * CENTRE * CENTRE;
        float a12 = float(POLE * (CENTRE + LENGTH)) * c1, a13 = float(POLE * CENTRE) * c2;
        float a23 = float(POLE * CENTRE * LENGTH) * between.cosine;
        float c11 = a22 * a33 - a23 * a23, c12 = a13 * a23 - a12 * a33, c13 = a12 * a23 - a13 * a22;
        float c22 = a11 * a33 - a13 * a13, c23 = a12 * a13 - a11 * a23, c33 = a11 * a22 - a12 * a12;
        float per_det = machine::inverse_of(a11 * c11 + a12 * c12 + a13 * c13);
        // Velocities of both poles' centres, and the drag on them.
        float p1x = v + float(CENTRE) * c1 * w, p1z = -float(CENTRE) * s1 * w;
        float p2x = v + float(LENGTH) * c1 * w + float(CENTRE) * c2 * w12;
        float p2z = -float(LENGTH) * s1 * w - float(CENTRE) * s2 * w12;
        float on_1 = float(POLE) * damping_factor(machine::root_of(p1x * p1x + p1z * p1z));
        float on_2 = float(POLE) * damping_factor(machine::root_of(p2x * p2x + p2z * p2z));
        float swing = float(POLE * CENTRE * LENGTH) * between.sine;
        float r1 = force + float(POLE * (CENTRE + LENGTH)) * s1 * w * w + float(POLE * CENTRE) * s2 * w12 * w12 -
                   float(CART) * damping_factor(fabsf(v)) * v - on_1 * p1x - on_2 * p2x;
        float r2 = float(POLE * GRAVITY * (CENTRE + LENGTH)) * s1 + swing * w12 * w12 -
                   float(INERTIA) * damping_factor(fabsf(w)) * w - on_1 * float(CENTRE) * (p1x * c1 - p1z * s1) -
                   on_2 * float(LENGTH) * (p2x * c1 - p2z * s1);
        float r3 = float(POLE * GRAVITY * CENTRE) * s2 - swing * w * w -
                   float(INERTIA) * damping_factor(fabsf(w12)) * w12 - on_2 * float(CENTRE) * (p2x * c2 - p2z * s2);
        float v_dot = (c11 * r1 + c12 * r2 + c13 * r3) * per_det;
        float w_dot = (c12 * r1 + c22 * r2 + c23 * r3) * per_det;
        float both_dot = (c13 * r1 + c23 * r2 + c33 * r3) * per_det;
        upper_centre(s1, c1, s2, c2);
        return {limited_speed(v + float(DT) * v_dot), limited_speed(w + float(DT) * w_dot),
                limited_speed(u + float(DT) * (both_dot - w_dot)), c11, c12, c13, per_det};
    }

    DEVICE void push_back(Speeds& next) const {
        float impulse = limit_impulse(x, 1.0f, next.v, next.c11 * next.per_det, float(DT)) * next.per_det;
        next.v = limited_speed(next.v + impulse * next.c11);
        next.w = limited_speed(next.w + impulse * next.c12);
        next.u = limited_speed(next.u + impulse * (next.c13 - next.c12));
    }
};
