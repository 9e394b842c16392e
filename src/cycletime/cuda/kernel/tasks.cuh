// All tasks, in the order of their numbers; cycletime/engines/cuda/tasks.py says the same in Python.
//
// A task has a constructor that takes its time step in seconds, `reset` (an episode of four random words), `load` and
// `save` (to and from 12 words of a position), `observe`, `cycle` (holds an action; the sum of the rewards, and whether
// it terminated the episode), and `steps`, the environment steps of its episode.
#pragma once
#include "acrobot.cuh"
#include "cart_pole.cuh"
#include "double_pendulum.cuh"
#include "mountain_car.cuh"
#include "pendulum.cuh"
#include "reacher.cuh"

template <class... Worlds>
struct Tasks {};
constexpr Tasks<Reacher, DoublePendulum, Pendulum, CartPole, MountainCar, Acrobot> TASKS;

template <class World>
struct Of {
    using Task = World;
};

// What `act` gives for the task of a number, as Of<World>: each task has code of its own.
template <class Act, class World, class... Others>
DEVICE auto with_task(int number, Act act, Tasks<World, Others...>) {
    if constexpr (sizeof...(Others) == 0)
        return act(Of<World>());
    else
        return number == 0 ? act(Of<World>()) : with_task(number - 1, act, Tasks<Others...>());
}
