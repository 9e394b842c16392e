// What both tasks share: Bullet's damping and joint limits, as in cycletime/tasks/bullet_physics.py, and angles.
#pragma once
#include <machine.cuh>

DEVICE float clipped(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
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

struct SineCosine {
    float sine, cosine;
};

// Of any angle: whole turns are taken off in two parts, so that no digits are lost.
DEVICE SineCosine sine_and_cosine(float angle) {
    float turns = machine::rounded(angle * 0.15915494309f);
    float rest = fmaf(turns, -6.28125f, angle);
    rest = fmaf(turns, -1.9353071795864769e-3f, rest);
    return {machine::sine_of(rest), machine::cosine_of(rest)};
}
