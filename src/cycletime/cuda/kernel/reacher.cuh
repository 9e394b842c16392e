// The Reacher Task, as in cycletime/tasks/reacher.py.
#pragma once
#include "layout.cuh"
#include "physics.cuh"
#include "random.cuh"

struct Reacher {
    static constexpr const char* NAME = "reacher";

    float q1, q2, w1, w2, late_q1, late_q2, target_x, target_y, potential;
    int steps;

    static constexpr double DT = 0.002;
    static constexpr double LINK_MASS = 0.03560471552353649, LINK_INERTIA = 1.4835298232074667e-4;
    static constexpr double TIP_MASS = 0.0041887902047863905, TIP_INERTIA = 1.6755160819145562e-7;
    static constexpr double CENTRE = 0.05000000074505806, LENGTH = 0.10000000149011612, TO_TIP = 0.10999999940395355;
    static constexpr double A = LINK_INERTIA + LINK_MASS * CENTRE * CENTRE + (LINK_MASS + TIP_MASS) * LENGTH * LENGTH;
    static constexpr double B = LINK_INERTIA + TIP_INERTIA + LINK_MASS * CENTRE * CENTRE + TIP_MASS * TO_TIP * TO_TIP;
    static constexpr double H = (LINK_MASS * CENTRE + TIP_MASS * TO_TIP) * LENGTH;
    static constexpr double DAMPING = 0.03999999910593033, ELBOW_LIMIT = 3.0;

    DEVICE explicit Reacher(float) {}  // its time step is fixed

    DEVICE void reset(const Words& words) {
        target_x = 0.27f * symmetric(words.word[0]);
        target_y = 0.27f * symmetric(words.word[1]);
        q1 = late_q1 = 3.14f * symmetric(words.word[2]);
        q2 = late_q2 = 3.14f * symmetric(words.word[3]);
        w1 = w2 = 0;
        steps = 0;
        float x, y;
        potential = distance_cost(x, y);
    }

    DEVICE void load(const Position& position) {
        const float* kept = position.world;
        q1 = kept[0], q2 = kept[1], w1 = kept[2], w2 = kept[3], late_q1 = kept[4], late_q2 = kept[5];
        target_x = kept[6], target_y = kept[7], potential = kept[8], steps = position.world_steps;
    }

    DEVICE void save(Position& position) const {
        float* kept = position.world;
        kept[0] = q1, kept[1] = q2, kept[2] = w1, kept[3] = w2, kept[4] = late_q1, kept[5] = late_q2;
        kept[6] = target_x, kept[7] = target_y, kept[8] = potential, position.world_steps = steps;
    }

    DEVICE void observe(float (&seen)[OBSERVATION]) const {
        float x, y;
        distance_cost(x, y);
        SineCosine one = sine_and_cosine(q1);
        seen[0] = target_x, seen[1] = target_y, seen[2] = x, seen[3] = y;
        seen[4] = one.cosine, seen[5] = one.sine, seen[6] = 0.1f * w1;
        seen[7] = q2 * static_cast<float>(1 / ELBOW_LIMIT), seen[8] = 0.1f * w2;
    }

    // Holds an action for a cycle; the sum of the rewards. `terminated` stays as it is.
    DEVICE float cycle(const float (&action)[ACTIONS], int cycle_steps, int limit_steps, bool& terminated) {
        float torque_1 = 0.05f * clipped(action[0], -1, 1), torque_2 = 0.05f * clipped(action[1], -1, 1);
        float size_1 = fabsf(action[0]), size_2 = fabsf(action[1]);
        int held = min(cycle_steps, limit_steps - steps);
        float power = 0, stuck = 0;
        auto advance = [&](const Speeds& next) {
            late_q1 = q1, late_q2 = q2;
            w1 = next.first, w2 = next.second;
            q1 += float(DT) * w1;
            q2 += float(DT) * w2;
            power += size_1 * fabsf(w1) + size_2 * fabsf(w2);
            stuck += fabsf(q2) > static_cast<float>(0.99 * ELBOW_LIMIT) ? 1.0f : 0.0f;
        };
        for (int left = held; left > 0; left--) {
            // A loop of its own for steps within the elbow's limits, since branches take a good part of a step.
            Speeds next = free_speeds(torque_1, torque_2);
            for (; !is_at_limit() && left > 1; left--) {
                advance(next);
                next = free_speeds(torque_1, torque_2);
            }
            if (is_at_limit()) push_back(next);
            advance(next);
        }
        steps += held;
        float before = potential, x, y;
        potential = distance_cost(x, y);
        float cost = 0.01f * power + 0.01f * held * (size_1 + size_2) + 0.1f * stuck;
        return potential - before - 0.125f * cost;
    }

    // Minus the weighted distance of the reported fingertip from the target, and where it is.
    DEVICE float distance_cost(float& x, float& y) const {
        SineCosine one = sine_and_cosine(late_q1), both = sine_and_cosine(late_q1 + late_q2);
        x = float(LENGTH) * one.cosine + float(TO_TIP) * both.cosine - target_x;
        y = float(LENGTH) * one.sine + float(TO_TIP) * both.sine - target_y;
        return -100.0f * machine::root_of(x * x + y * y);
    }

    // The speeds after a step, and what pushing the elbow back needs to know.
    struct Speeds {
        float first, second, m11, m12, per_det;
    };

    DEVICE bool is_at_limit() const { return fabsf(q2) >= float(ELBOW_LIMIT); }

    DEVICE Speeds free_speeds(float torque_1, float torque_2) const {
        // The elbow stays within its limits or a little beyond, where the quick sine and cosine are exact enough.
        float s = machine::sine_of(q2), c = machine::cosine_of(q2);
        float hc = float(H) * c, hs = float(H) * s, w12 = w1 + w2;
        float m11 = float(A + B) + 2 * hc, m12 = float(B) + hc;
        float per_det = machine::inverse_of(float(A * B) - hc * hc);
        // Velocities of the second link's centre and of the tip; sine^2 + cosine^2 = 1 is used throughout. Rounding can
        // make a square of nearly zero negative.
        float first = float(LENGTH) * w1, turning = 2 * first * w12;
        float link = float(CENTRE) * w12, tip = float(TO_TIP) * w12;
        float link_speed = machine::root_of(fabsf(first * first + link * link + float(CENTRE) * turning * c));
        float tip_speed = machine::root_of(fabsf(first * first + tip * tip + float(TO_TIP) * turning * c));
        float on_link = float(LINK_MASS) * damping_factor(link_speed);
        float on_tip = float(TIP_MASS) * damping_factor(tip_speed);
        float on_first = float(LINK_MASS * CENTRE * CENTRE) * damping_factor(float(CENTRE) * fabsf(w1));
        float drag_2 = float(LINK_INERTIA + TIP_INERTIA) * damping_factor(fabsf(w12)) * w12 +
                       on_link * (float(CENTRE) * (first * c + link)) + on_tip * (float(TO_TIP) * (first * c + tip));
        float drag_1 = drag_2 + float(LINK_INERTIA) * damping_factor(fabsf(w1)) * w1 + on_first * w1 +
                       float(LENGTH) * (on_link * (first + link * c) + on_tip * (first + tip * c));
        float force_1 = torque_1 + hs * w2 * (w1 + w12) - drag_1;
        float force_2 = torque_2 - hs * w1 * w1 - drag_2;
        float step = float(DT) * per_det;
        return {limited_speed(w1 + step * (float(B) * force_1 - m12 * force_2)),
                limited_speed(w2 + step * (m11 * force_2 - m12 * force_1)), m11, m12, per_det};
    }

    DEVICE void push_back(Speeds& next) const {
        float mobility = next.m11 * next.per_det;
        float impulse = limit_impulse(q2, float(ELBOW_LIMIT), next.second, mobility, float(DT));
        next.first = limited_speed(next.first - impulse * next.m12 * next.per_det);
        next.second = limited_speed(next.second + impulse * mobility);
    }
};
