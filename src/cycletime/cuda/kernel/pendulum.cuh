// The Pendulum, as in cycletime/tasks/pendulum.py. The angle is kept between -pi and pi.
#pragma once
#include "layout.cuh"
#include "physics.cuh"
#include "random.cuh"

struct Pendulum {
    static constexpr const char* NAME = "pendulum";
    static constexpr float PI = 3.14159265359f, FASTEST = 8.0f;
    static constexpr float GRAVITY_PULL = 15.0f, TORQUE_PULL = 3.0f;  // 3 g / 2 l and 3 / m l^2

    const float dt, share;
    float angle, speed;
    int steps;

    DEVICE explicit Pendulum(float env_dt_s) : dt(env_dt_s), share(env_dt_s / 0.05f) {}

    DEVICE void reset(const Words& words) {
        angle = PI * symmetric(words.word[0]);
        speed = symmetric(words.word[1]);
        steps = 0;
    }

    DEVICE void load(const Position& position) {
        angle = position.world[0], speed = position.world[1], steps = position.world_steps;
    }

    DEVICE void save(Position& position) const {
        position.world[0] = angle, position.world[1] = speed, position.world_steps = steps;
    }

    DEVICE void observe(float (&seen)[OBSERVATION]) const {
        SineCosine turned = sine_and_cosine(angle);
        see(seen, {turned.cosine, turned.sine, speed});
    }

    DEVICE float cycle(const float (&action)[ACTIONS], int cycle_steps, int limit_steps, bool& terminated) {
        float torque = 2.0f * clipped(action[0], -1, 1), push = TORQUE_PULL * torque, cost = 0;
        int held = min(cycle_steps, limit_steps - steps);
        for (int left = held; left > 0; left--) {
            cost += angle * angle + 0.1f * speed * speed;
            speed = clipped(speed + dt * (GRAVITY_PULL * machine::sine_of(angle) + push), -FASTEST, FASTEST);
            angle = within_a_turn(angle + dt * speed);
        }
        steps += held;
        return -share * (cost + held * 0.001f * torque * torque);
    }
};
