// The Mountain Car, as in cycletime/tasks/mountain_car.py.
#pragma once
#include "layout.cuh"
#include "physics.cuh"
#include "random.cuh"

struct MountainCar {
    static constexpr const char* NAME = "mountain-car";
    static constexpr float POWER = 0.0015f, SLOPE = 0.0025f, FASTEST = 0.07f;
    static constexpr float LEFT_END = -1.2f, RIGHT_END = 0.6f, GOAL = 0.45f;

    const float share;
    float x, speed;
    int steps;

    DEVICE explicit MountainCar(float env_dt_s) : share(env_dt_s / 0.02f) {}

    DEVICE void reset(const Words& words) {
        x = -0.5f + 0.1f * symmetric(words.word[0]);
        speed = 0;
        steps = 0;
    }

    DEVICE void load(const Position& position) {
        x = position.world[0], speed = position.world[1], steps = position.world_steps;
    }

    DEVICE void save(Position& position) const {
        position.world[0] = x, position.world[1] = speed, position.world_steps = steps;
    }

    DEVICE void observe(float (&seen)[OBSERVATION]) const { see(seen, {x, speed}); }

    DEVICE float cycle(const float (&action)[ACTIONS], int cycle_steps, int limit_steps, bool& terminated) {
        float drive = share * POWER * clipped(action[0], -1, 1), pull = share * SLOPE;
        int first = steps, last = min(steps + cycle_steps, limit_steps);
        while (steps < last && !terminated) {
            speed = clipped(speed + (drive - pull * machine::cosine_of(3 * x)), -FASTEST, FASTEST);
            x = clipped(x + share * speed, LEFT_END, RIGHT_END);
            if (x <= LEFT_END) speed = fmaxf(speed, 0.0f);
            terminated = x >= GOAL && speed >= 0;
            steps++;
        }
        return (terminated ? 100.0f : 0.0f) - 0.1f * share * (steps - first) * action[0] * action[0];
    }
};
