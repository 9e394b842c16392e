// What tasks share: what they see, angles, Runge-Kutta's method, and Bullet's damping and joint limits.
#pragma once
#include "layout.cuh"
#include <machine.cuh>

DEVICE float clipped(float x, float low, float high) { return fminf(fmaxf(x, low), high); }

// An observation of fewer numbers than the network has inputs; those of zero learn nothing and say nothing.
template <int N>
DEVICE void see(float (&seen)[OBSERVATION], const float (&numbers)[N]) {
#pragma unroll
    for (int i = 0; i < OBSERVATION; i++) seen[i] = i < N ? numbers[i < N ? i : 0] : 0;
}

struct SineCosine {
    float sine, cosine;
};

// The same direction between -pi and pi: whole turns are taken off in two parts, so that no digits are lost.
DEVICE float within_a_turn(float angle) {
    float turns = machine::rounded(angle * 0.15915494309f);
    float rest = fmaf(turns, -6.28125f, angle);
    return fmaf(turns, -1.9353071795864769e-3f, rest);
}

DEVICE SineCosine sine_and_cosine(float angle) {
    float rest = within_a_turn(angle);
    return {machine::sine_of(rest), machine::cosine_of(rest)};
}

// A step of the classical Runge-Kutta method of fourth order, as in cycletime/tasks/runge_kutta.py. `slopes(at, found)`
// finds how fast each value grows.
template <int N, class Slopes>
DEVICE void runge_kutta(float (&values)[N], float dt, Slopes slopes) {
    float at[N], found[N] = {}, mean[N] = {};
#pragma unroll
    for (int stage = 0; stage < 4; stage++) {
        bool is_outer = stage == 0 || stage == 3;
        float reach = stage == 0 ? 0.0f : is_outer ? dt : 0.5f * dt, weight = is_outer ? 1 / 6.0f : 1 / 3.0f;
#pragma unroll
        for (int i = 0; i < N; i++) at[i] = values[i] + reach * found[i];
        slopes(at, found);
#pragma unroll
        for (int i = 0; i < N; i++) mean[i] += weight * found[i];
    }
#pragma unroll
    for (int i = 0; i < N; i++) values[i] += dt * mean[i];
}

// Bullet's, as in cycletime/tasks/bullet_physics.py.
DEVICE float limited_speed(float speed) { return clipped(speed, -100.0f, 100.0f); }
DEVICE float damping_factor(float speed) { return 0.04f + 0.04f * speed; }

// The signed impulse at a joint with limits -limit and +limit; zero inside.
DEVICE float limit_impulse(float position, float limit, float speed, float mobility, float env_dt_s) {
    float room = limit - fabsf(position);
    float inwards = position < 0 ? 1.0f : -1.0f;
    float push_back = room > -0.04f ? -room * (0.2f / env_dt_s) : 0.0f;
    float impulse = clipped((push_back - inwards * speed) * machine::inverse_of(mobility), 0.0f, 100.0f);
    return room > 0 ? 0.0f : inwards * impulse;
}
