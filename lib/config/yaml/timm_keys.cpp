// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/timm_keys.h"

#include <algorithm>
#include <array>

namespace stoker::config {
namespace {

/// Keys that change nothing here, whatever their value.
constexpr std::array kWithoutWork = {"amp_impl",
                                     "apex_amp",
                                     "dataset_download",
                                     "dataset_trust_remote_code",
                                     "device_modules",
                                     "dist_bn",
                                     "fast_norm",
                                     "fuser",
                                     "input_img_mode",
                                     "input_key",
                                     "interpolation",
                                     "local_rank",
                                     "log_wandb",
                                     "lr_cycle_decay",
                                     "lr_noise_pct",
                                     "lr_noise_std",
                                     "native_amp",
                                     "no_ddp_bb",
                                     "no_prefetcher",
                                     "no_resume_opt",
                                     "patience_epochs",
                                     "recovery_interval",
                                     "remode",
                                     "save_images",
                                     "sched_on_updates",
                                     "synchronize_step",
                                     "target_key",
                                     "torchcompile",
                                     "torchcompile_mode",
                                     "torchscript",
                                     "train_interpolation",
                                     "use_multi_epochs_loader",
                                     "wandb_project",
                                     "wandb_resume_id",
                                     "wandb_tags",
                                     "worker_seeding",
                                     "model_ema_force_cpu"};

constexpr std::array<OnlyAs, 36> kOnlyOff = {{{"aug_repeats"},
                                              {"aug_splits"},
                                              {"bce_loss"},
                                              {"bce_pos_weight"},
                                              {"bce_sum"},
                                              {"bce_target_thresh"},
                                              {"bn_eps"},
                                              {"bn_momentum"},
                                              {"class_map", "", "classes are the names of the folders"},
                                              {"cutmix_minmax"},
                                              {"drop_block"},
                                              {"drop_connect", "", "write drop_path"},
                                              {"epoch_repeats", "", "write more epochs"},
                                              {"gp"},
                                              {"head_init_bias"},
                                              {"head_init_scale"},
                                              {"jsd_loss"},
                                              {"lr_cycle_limit", "1"},
                                              {"lr_cycle_mul", "1"},
                                              {"lr_k_decay", "1"},
                                              {"lr_noise"},
                                              {"mixup_mode", "batch"},
                                              {"mixup_off_epoch"},
                                              {"model_dtype", "float32", "write amp: true"},
                                              {"model_kwargs"},
                                              {"naflex_loader"},
                                              {"no_aug", "", "write train_crop: center, hflip: 0 and no augmentation"},
                                              {"opt_kwargs"},
                                              {"recount", "1"},
                                              {"resplit"},
                                              {"split_bn"},
                                              {"start_epoch", "", "resume: auto goes on where a run ended"},
                                              {"sync_bn"},
                                              {"train_num_samples"},
                                              {"val_num_samples"},
                                              {"vflip"}}};

}  // namespace

const OnlyAs* only_off(const std::string& name) {
  const auto found =
      std::find_if(kOnlyOff.begin(), kOnlyOff.end(), [&](const OnlyAs& key) { return name == key.name; });
  return found == kOnlyOff.end() ? nullptr : &*found;
}

bool is_without_work(const std::string& name) {
  return std::any_of(kWithoutWork.begin(), kWithoutWork.end(), [&](const char* key) { return name == key; });
}

}  // namespace stoker::config
