// The Cart-Pole, as in cycletime/tasks/cart_pole.py. The pole's angle is kept between -pi and pi.
#pragma once
#include "layout.cuh"
#include "physics.cuh"
#include "random.cuh"

struct CartPole {
    static constexpr const char* NAME = "cart-pole";
    static constexpr double POLE = 0.1, RADIUS = 0.045, CAPS = POLE * 4 * RADIUS / (4 * RADIUS + 3);
    static constexpr double INERTIA = (POLE - CAPS) * (3 * RADIUS * RADIUS + 1) / 12 +
                                      CAPS * (2 * RADIUS * RADIUS / 5 + (3 * RADIUS + 2) / 8);
    // The mass matrix is [[A, B cos], [B cos, C]].
    static constexpr double A = 1 + POLE, B = POLE / 2, C = INERTIA + POLE / 4, GRAVITY = 9.81;
    static constexpr double CART_DAMPING = 5e-4, POLE_DAMPING = 2e-6, RAIL_END = 1.8;
    // MuJoCo's soft limit.
    static constexpr double SOFTEST = 0.9, STIFFEST = 0.95, SOFT_WIDTH = 0.001, RESPONSE_S = STIFFEST * 0.08;
    static constexpr double MOBILITY_UPRIGHT = C / (A * C - B * B);
    static constexpr double DECAY = 3.321928094887362;  // a tolerance falls to 0.1 = 2^-DECAY at its margin

    const float dt, share;
    float numbers[4];  // x, angle, and their speeds
    int steps;

    DEVICE explicit CartPole(float env_dt_s) : dt(env_dt_s), share(env_dt_s / 0.01f) {}

    DEVICE void reset(const Words& words) {
        float drawn[4];
        normals(words.word[0], words.word[1], drawn[0], drawn[1]);
        normals(words.word[2], words.word[3], drawn[2], drawn[3]);
#pragma unroll
        for (int i = 0; i < 4; i++) numbers[i] = 0.01f * drawn[i];
        numbers[1] = within_a_turn(3.14159265359f + numbers[1]);
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
        SineCosine pole = sine_and_cosine(numbers[1]);
        see(seen, {numbers[0], pole.cosine, pole.sine, numbers[2], numbers[3]});
    }

    DEVICE float cycle(const float (&action)[ACTIONS], int cycle_steps, int limit_steps, bool& terminated) {
        float push = clipped(action[0], -1, 1), force = 10.0f * push, reward = 0;
        int held = min(cycle_steps, limit_steps - steps);
        for (int left = held; left > 0; left--) {
            runge_kutta(numbers, dt, [=](const float (&at)[4], float (&found)[4]) { slopes(at, force, found); });
            numbers[1] = within_a_turn(numbers[1]);
            reward += merit();
        }
        steps += held;
        return share * (1 - 0.2f * push * push) * reward;
    }

    // Upright, slowly and in the middle.
    DEVICE float merit() const {
        float x = numbers[0], w = numbers[3];
        float centred = 1 + machine::exp2_of(float(-DECAY / 4) * x * x);
        float slow = 1 + machine::exp2_of(float(-DECAY / 25) * w * w);
        return 0.125f * (1 + machine::cosine_of(numbers[1])) * centred * slow;
    }

    DEVICE static void slopes(const float (&at)[4], float force, float (&found)[4]) {
        // Within a step the pole goes less than a turn beyond pi, where the quick sine and cosine are exact enough.
        float x = at[0], v = at[2], w = at[3], s = machine::sine_of(at[1]), bc = float(B) * machine::cosine_of(at[1]);
        float on_cart = force - float(CART_DAMPING) * v + float(B) * s * w * w;
        float on_pole = float(B * GRAVITY) * s - float(POLE_DAMPING) * w;
        float per_det = machine::inverse_of(float(A * C) - bc * bc);
        if (fabsf(x) > float(RAIL_END))
            on_cart += limit_force(x, v, (float(C) * on_cart - bc * on_pole) * per_det, float(C) * per_det);
        found[0] = v, found[1] = w;
        found[2] = (float(C) * on_cart - bc * on_pole) * per_det;
        found[3] = (float(A) * on_pole - bc * on_cart) * per_det;
    }

    // Of a rail's end that the cart is beyond; `free` is its acceleration without it.
    DEVICE static float limit_force(float x, float v, float free, float mobility) {
        float inwards = x < 0 ? 1.0f : -1.0f, beyond = fabsf(x) - float(RAIL_END);
        float part = fminf(beyond * float(1 / SOFT_WIDTH), 1.0f), rest = 1 - part;
        float stiff = float(SOFTEST) + float(STIFFEST - SOFTEST) * (part < 0.5f ? 2 * part * part : 1 - 2 * rest * rest);
        float wanted = float(1 / (RESPONSE_S * RESPONSE_S)) * stiff * beyond - float(2 / RESPONSE_S) * inwards * v;
        float softness = (1 - stiff) * machine::inverse_of(stiff) * float(MOBILITY_UPRIGHT);
        return inwards * fmaxf(wanted - inwards * free, 0.0f) * machine::inverse_of(mobility + softness);
    }
};
