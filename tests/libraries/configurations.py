"""Small configurations of our own, in the shapes that other libraries write."""

import json
import zipfile
from pathlib import Path

ISAAC_ENV = """\
viewer:
  eye: !!python/tuple
  - 7.5
  - 7.5
sim:
  dt: 0.005  # 200 Hz
  render_interval: 4
decimation: 4
scene:
  num_envs: 4096
  height_scanner:
    update_period: 0.02
  contact_forces:
    update_period: 0.005
    history_length: 3
observations:
  policy:
    history_length: 5
    joint_pos:
      func: isaaclab.envs.mdp.observations:joint_pos_rel
      params:
        joint_ids: !!python/object/apply:builtins.slice
        - null
        - null
        - null
events:
  push_robot:
    interval_range_s: !!python/tuple
    - 10.0
    - 15.0
rewards:
  track_lin_vel_xy_exp:
    func: isaaclab.envs.mdp.rewards:track_lin_vel_xy_exp
    weight: 1.0
  action_rate_l2:
    func: isaaclab.envs.mdp.rewards:action_rate_l2
    weight: -0.01
  termination_penalty:
    func: isaaclab.envs.mdp.rewards:is_terminated
    weight: -200.0
curriculum:
  action_rate:
    func: isaaclab.envs.mdp.curriculums:modify_reward_weight
    params:
      term_name: action_rate_l2
      weight: -0.1
      num_steps: 12000
commands:
  base_velocity:
    resampling_time_range: !!python/tuple
    - 10.0
    - 10.0
episode_length_s: 20.0
"""
RSL_RL_AGENT = """\
seed: 42
num_steps_per_env: 24
max_iterations: 1500
save_interval: 50
algorithm:
  class_name: PPO
  num_learning_epochs: 5
  num_mini_batches: 4
  learning_rate: 0.001
  schedule: adaptive
  gamma: 0.99
  lam: 0.95
  desired_kl: 0.01
policy:
  class_name: ActorCritic
  init_noise_std: 1.0
"""
MJLAB_ENV = """\
decimation: 4
scene:
  num_envs: 32
  entities:
    robot:
      articulation:
        actuators: !!python/tuple
        - transmission_type: !!python/object/apply:mjlab.actuator.actuator.TransmissionType
          - joint
          delay_min_lag: 0
          delay_max_lag: 4
  sensors: !!python/tuple
  - name: self_collision
    history_length: 4
observations:
  actor:
    terms:
      base_ang_vel:
        func: &id001 !!python/name:mjlab.envs.mdp.observations.builtin_sensor ''
        delay_min_lag: 0
        delay_max_lag: 2
        history_length: 3
  critic:
    terms:
      base_ang_vel:
        func: *id001
sim:
  mujoco:
    timestep: 0.005
rewards:
  action_rate_l2:
    weight: -0.1
  soft_landing:
    weight: -1.0e-05
curriculum:
  command_vel:
    params:
      velocity_stages:
      - step: 0
        lin_vel_x: !!python/tuple [-1.0, 1.0]
      - step: 120000
        lin_vel_x: !!python/tuple [-1.5, 2.0]
episode_length_s: 20.0
"""
SKRL = """\
seed: 42
models:
  separate: False
memory:
  class: RandomMemory
  memory_size: -1  # as agent:rollouts
agent:
  class: PPO
  rollouts: 16
  learning_epochs: 8
  mini_batches: 8
  discount_factor: 0.99
  lambda: 0.95
  learning_rate: 3.0e-04
  random_timesteps: 0
  learning_starts: 0
  rewards_shaper_scale: 0.1
trainer:
  class: SequentialTrainer
  timesteps: 2400
"""
RL_GAMES = """\
params:
  algo:
    name: a2c_continuous
  config:
    num_actors: 512
    reward_shaper:
      scale_value: 0.1
    gamma: 0.99
    tau : 0.95
    learning_rate: 3e-4
    max_epochs: 150
    save_frequency: 25
    horizon_length: 16
    minibatch_size: 8192
    seq_length: 4
"""
PLAYGROUND_ENV = {
    "ctrl_dt": 0.02,
    "sim_dt": 0.004,
    "episode_length": 1000,
    "action_repeat": 1,
    "history_len": 1,
    "reward_config": {
        "scales": {"tracking_lin_vel": 1.0, "termination": -1.0, "action_rate": -0.01},
        "tracking_sigma": 0.25,
    },
    "command_config": {"a": [1.5, 0.8, 1.2]},
}
BRAX = {
    "num_timesteps": 200_000_000,
    "num_envs": 8192,
    "episode_length": 1000,
    "action_repeat": 1,
    "unroll_length": 20,
    "num_minibatches": 32,
    "num_updates_per_batch": 4,
    "discounting": 0.97,
    "batch_size": 256,
    "reward_scaling": 1.0,
}
ZOO = """\
# tuned
Hopper-v5: &mujoco
  n_timesteps: !!float 1e6
  policy: 'MlpPolicy'
  n_envs: 4
  n_steps: 512
  batch_size: 64
  gamma: 0.99
Walker2d-v5:
  <<: *mujoco
  n_steps: 1024
"""
LEROBOT = {  # of 0.6
    "job_name": "reach",
    "batch_size": 256,
    "env": {"type": "gym_manipulator", "fps": 10, "processor": {"reset": {"control_time_s": 15.0}}},
    "policy": {"type": "gaussian_actor", "online_steps": 1_000_000, "online_buffer_capacity": 100_000},
    "algorithm": {"discount": 0.97},
}
LEROBOT_0_4 = {
    "job_name": "reach",
    "batch_size": 256,
    "env": {"type": "gym_manipulator", "fps": 10},
    "policy": {"type": "sac", "discount": 0.97, "online_steps": 1_000_000, "online_step_before_learning": 100},
}
CLEANRL = """\
python cleanrl/ppo_continuous_action.py --env-id Hopper-v4 --total-timesteps 1000000 \\
    --num-steps 2048 --num-envs 1 --num-minibatches 32 --gamma=0.99 --gae-lambda 0.95 --anneal-lr
"""
CLEANRL_TABLE = """\
|param|value|
|-|-|
|env_id|Hopper-v4|
|total_timesteps|1000000|
|num_steps|2048|
|num_envs|1|
|num_minibatches|32|
|gamma|0.99|
"""
SB3_DATA = {
    "policy_class": {":type:": "<class 'abc.ABCMeta'>", ":serialized:": "gAWV", "__module__": "stable_baselines3"},
    "num_timesteps": 100_000,
    "_total_timesteps": 100_000,
    "_num_timesteps_at_start": 0,
    "_last_episode_starts": None,
    "_episode_num": 0,
    "_current_progress_remaining": 0.0,
    "_stats_window_size": 100,
    "_n_updates": 490,
    "n_envs": 4,
    "n_steps": 512,
    "batch_size": 64,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "n_epochs": 10,
    "learning_rate": 0.0003,
    "clip_range": {":type:": "<class 'function'>", ":serialized:": "gAWV"},
}


def write_run(folder: Path, env: str = ISAAC_ENV, agent: str = RSL_RL_AGENT) -> Path:
    (folder / "params").mkdir(parents=True)
    (folder / "params" / "env.yaml").write_text(env)
    (folder / "params" / "agent.yaml").write_text(agent)
    return folder


def write_model(path: Path, data: object = None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(SB3_DATA if data is None else data, indent=4))
        archive.writestr("policy.pth", b"not opened")
    return path
