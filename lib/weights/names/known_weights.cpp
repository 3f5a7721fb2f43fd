// SPDX-License-Identifier: Apache-2.0
// Sources of the table: torchvision's models/*.py and timm's models/*.py; sizes and SHA-256 also from programs that
// check them. The caches lie as torch.hub.load_state_dict_from_url() and huggingface_hub leave them.
#include "weights/names/known_weights.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/format.h"

namespace stoker::weights {
namespace {

namespace fs = std::filesystem;
using core::ends_with;
using core::format;

/// `file` lies at torchvision's address, or is a whole address; "timm/..." is a repository of Hugging Face. `mebibytes`
/// is torchvision's figure; of `sha256` as many digits as are known.
struct Published {
  const char *network, *name, *file;
  double mebibytes = 0;
  const char* sha256 = "";
};
constexpr char kTorchvision[] = "https://download.pytorch.org/models/";
constexpr char kHub[] = "https://huggingface.co/";

constexpr Published kPublished[] = {
    {"resnet18", "IMAGENET1K_V1", "resnet18-f37072fd.pth", 44.661,
     "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec"},
    {"resnet18", "a1_in1k", "timm/resnet18.a1_in1k"},
    {"resnet34", "IMAGENET1K_V1", "resnet34-b627a593.pth", 83.275,
     "b627a593bcbe140c234610266fe4f8ae95ea42fc881d091c9b6052e6b1d0590f"},
    {"resnet34", "a1_in1k", "timm/resnet34.a1_in1k"},
    {"resnet50", "IMAGENET1K_V2", "resnet50-11ad3fa6.pth", 97.79,
     "11ad3fa62ca79e40addfd354a8ec4b7c75143b3038b8d2a807fbc68deab379ca"},
    {"resnet50", "IMAGENET1K_V1", "resnet50-0676ba61.pth", 97.781,
     "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a"},
    {"resnet50", "a1_in1k", "timm/resnet50.a1_in1k"},
    {"resnet101", "IMAGENET1K_V2", "resnet101-cd907fc2.pth", 170.53,
     "cd907fc2a0de2292b2ba2b27d2216bc672d84632d1cf20058d01c0c03b5e020e"},
    {"resnet101", "IMAGENET1K_V1", "resnet101-63fe2227.pth", 170.511,
     "63fe2227b86e8f1f2063f43a75c84d195911b6a0eace650907dd3dc62dd49a0a"},
    {"resnet101", "a1h_in1k", "timm/resnet101.a1h_in1k"},
    {"resnet152", "IMAGENET1K_V2", "resnet152-f82ba261.pth", 230.474, "f82ba261"},
    {"resnet152", "IMAGENET1K_V1", "resnet152-394f9c45.pth", 230.434,
     "394f9c45966e3651a89bbb78a48410a6755854ce4a5ab64927cf1c7247f85e58"},
    {"resnet152", "a1h_in1k", "timm/resnet152.a1h_in1k"},
    {"efficientnet_b0", "IMAGENET1K_V1", "efficientnet_b0_rwightman-7f5810bc.pth", 20.451,
     "7f5810bc96def8f7552d5b7e68d53c4786f81167d28291b21c0d90e1fca14934"},
    {"efficientnet_b0", "ra_in1k", "timm/efficientnet_b0.ra_in1k"},
    {"efficientnet_b1", "IMAGENET1K_V2", "efficientnet_b1-c27df63c.pth", 30.136,
     "c27df63ce6eb17ef8bcea58922fd3a254cba910c720f41ee89d64d99fb7a4ddf"},
    {"efficientnet_b1", "IMAGENET1K_V1", "efficientnet_b1_rwightman-bac287d4.pth", 30.134, "bac287d4"},
    {"efficientnet_b1", "ft_in1k", "timm/efficientnet_b1.ft_in1k"},
    {"efficientnet_b2", "IMAGENET1K_V1", "efficientnet_b2_rwightman-c35c1473.pth", 35.174, "c35c1473"},
    {"efficientnet_b2", "ra_in1k", "timm/efficientnet_b2.ra_in1k"},
    {"efficientnet_b3", "IMAGENET1K_V1", "efficientnet_b3_rwightman-b3899882.pth", 47.184,
     "b3899882250c22946d0229d266049fcd133c169233530b36b9ffa7983988362f"},
    {"efficientnet_b3", "ra2_in1k", "timm/efficientnet_b3.ra2_in1k"},
    {"efficientnet_b4", "IMAGENET1K_V1", "efficientnet_b4_rwightman-23ab8bcd.pth", 74.489,
     "23ab8bcd5bdbef61a7a43b91adcad81f622fd7f36fb4935a569828d77888c44e"},
    {"efficientnet_b4", "ra2_in1k", "timm/efficientnet_b4.ra2_in1k"},
    {"efficientnet_b5", "IMAGENET1K_V1", "efficientnet_b5_lukemelas-1a07897c.pth", 116.864, "1a07897c"},
    {"efficientnet_b5", "sw_in12k_ft_in1k", "timm/efficientnet_b5.sw_in12k_ft_in1k"},
    {"efficientnet_b6", "IMAGENET1K_V1", "efficientnet_b6_lukemelas-24a108a5.pth", 165.362, "24a108a5"},
    {"efficientnet_b7", "IMAGENET1K_V1", "efficientnet_b7_lukemelas-c5b4e57e.pth", 254.675, "c5b4e57e"},
    {"mobilenet_v3_small", "IMAGENET1K_V1", "mobilenet_v3_small-047dcff4.pth", 9.829,
     "047dcff4addef86ea5bc2eff13c9614dc11f47ab1160d0a71a25e7db994f4e1f"},
    {"mobilenet_v3_small", "lamb_in1k", "timm/mobilenetv3_small_100.lamb_in1k"},
    {"mobilenet_v3_large", "IMAGENET1K_V2", "mobilenet_v3_large-5c1a4163.pth", 21.107,
     "5c1a416349c4cf298f2a6a5e2600ed0ee55e604713578f5e74e6bc8bcaef7997"},
    {"mobilenet_v3_large", "IMAGENET1K_V1", "mobilenet_v3_large-8738ca79.pth", 21.114,
     "8738ca797c879b547d18bbd15da5736ff2557b2036a9af72225393ca61759a04"},
    {"mobilenet_v3_large", "ra_in1k", "timm/mobilenetv3_large_100.ra_in1k"},
    {"convnext_tiny", "IMAGENET1K_V1", "convnext_tiny-983f1562.pth", 109.119,
     "983f1562536e84ff750a1576fb08e54de751dbf2e17c0d8a4a13704341fdcd3d"},
    {"convnext_tiny", "in12k_ft_in1k", "timm/convnext_tiny.in12k_ft_in1k"},
    {"convnext_small", "IMAGENET1K_V1", "convnext_small-0c510722.pth", 191.703,
     "0c510722adfd92966a2bd72b92f785ca05966bbac03cafe2f7a90b1f54bfab9a"},
    {"convnext_small", "in12k_ft_in1k", "timm/convnext_small.in12k_ft_in1k"},
    {"convnext_base", "IMAGENET1K_V1", "convnext_base-6075fbad.pth", 338.064,
     "6075fbad31c688f9ed013922a59daf0fc2f4dc12e6e43bc01fa840c7bd1ca2cd"},
    {"convnext_base", "fb_in22k_ft_in1k", "timm/convnext_base.fb_in22k_ft_in1k"},
    {"vit_s_16", "DeiT", "https://dl.fbaipublicfiles.com/deit/deit_small_patch16_224-cd65a155.pth", 0, "cd65a155"},
    {"vit_s_16", "augreg_in21k_ft_in1k", "timm/vit_small_patch16_224.augreg_in21k_ft_in1k"},
    {"vit_b_16", "IMAGENET1K_V1", "vit_b_16-c867db91.pth", 330.285,
     "c867db91d3e12c6cbadabb610d73c24a546bf82d8c03a9fea34f43a712ddb0e9"},
    {"vit_b_16", "IMAGENET1K_SWAG_E2E_V1", "vit_b_16_swag-9ac1b537.pth", 331.398, "9ac1b537"},
    {"vit_b_16", "IMAGENET1K_SWAG_LINEAR_V1", "vit_b_16_lc_swag-4e70ced5.pth", 330.285, "4e70ced5"},
    {"vit_b_16", "augreg2_in21k_ft_in1k", "timm/vit_base_patch16_224.augreg2_in21k_ft_in1k"},
    {"resnext50_32x4d", "IMAGENET1K_V2", "resnext50_32x4d-1a0047aa.pth", 0, "1a0047aa"},
    {"resnext50_32x4d", "IMAGENET1K_V1", "resnext50_32x4d-7cdf4587.pth", 0, "7cdf4587"},
    {"resnext101_32x8d", "IMAGENET1K_V2", "resnext101_32x8d-110c445d.pth", 0, "110c445d"},
    {"resnext101_32x8d", "IMAGENET1K_V1", "resnext101_32x8d-8ba56ff5.pth", 0, "8ba56ff5"},
    {"resnext101_64x4d", "IMAGENET1K_V1", "resnext101_64x4d-173b62eb.pth", 0, "173b62eb"},
    {"wide_resnet50_2", "IMAGENET1K_V2", "wide_resnet50_2-9ba9bcbe.pth", 0, "9ba9bcbe"},
    {"wide_resnet50_2", "IMAGENET1K_V1", "wide_resnet50_2-95faca4d.pth", 0, "95faca4d"},
    {"wide_resnet101_2", "IMAGENET1K_V2", "wide_resnet101_2-d733dc28.pth", 0, "d733dc28"},
    {"wide_resnet101_2", "IMAGENET1K_V1", "wide_resnet101_2-32ee1156.pth", 0, "32ee1156"},
    {"mobilenet_v2", "IMAGENET1K_V2", "mobilenet_v2-7ebf99e0.pth", 0, "7ebf99e0"},
    {"mobilenet_v2", "IMAGENET1K_V1", "mobilenet_v2-b0353104.pth", 0, "b0353104"},
    {"densenet121", "IMAGENET1K_V1", "densenet121-a639ec97.pth", 0, "a639ec97"},
    {"densenet161", "IMAGENET1K_V1", "densenet161-8d451a50.pth", 0, "8d451a50"},
    {"densenet169", "IMAGENET1K_V1", "densenet169-b2777c0a.pth", 0, "b2777c0a"},
    {"densenet201", "IMAGENET1K_V1", "densenet201-c1103571.pth", 0, "c1103571"},
    {"regnet_y_400mf", "IMAGENET1K_V2", "regnet_y_400mf-e6988f5f.pth", 0, "e6988f5f"},
    {"regnet_y_400mf", "IMAGENET1K_V1", "regnet_y_400mf-c65dace8.pth", 0, "c65dace8"},
    {"regnet_y_800mf", "IMAGENET1K_V2", "regnet_y_800mf-58fc7688.pth", 0, "58fc7688"},
    {"regnet_y_800mf", "IMAGENET1K_V1", "regnet_y_800mf-1b27b58c.pth", 0, "1b27b58c"},
    {"regnet_y_1_6gf", "IMAGENET1K_V2", "regnet_y_1_6gf-0d7bc02a.pth", 0, "0d7bc02a"},
    {"regnet_y_1_6gf", "IMAGENET1K_V1", "regnet_y_1_6gf-b11a554e.pth", 0, "b11a554e"},
    {"regnet_y_3_2gf", "IMAGENET1K_V2", "regnet_y_3_2gf-9180c971.pth", 0, "9180c971"},
    {"regnet_y_3_2gf", "IMAGENET1K_V1", "regnet_y_3_2gf-b5a9779c.pth", 0, "b5a9779c"},
    {"regnet_y_8gf", "IMAGENET1K_V2", "regnet_y_8gf-dc2b1b54.pth", 0, "dc2b1b54"},
    {"regnet_y_8gf", "IMAGENET1K_V1", "regnet_y_8gf-d0d0e4a8.pth", 0, "d0d0e4a8"},
    {"regnet_y_16gf", "IMAGENET1K_V2", "regnet_y_16gf-3e4a00f9.pth", 0, "3e4a00f9"},
    {"regnet_y_16gf", "IMAGENET1K_V1", "regnet_y_16gf-9e6ed7dd.pth", 0, "9e6ed7dd"},
    {"regnet_y_16gf", "IMAGENET1K_SWAG_E2E_V1", "regnet_y_16gf_swag-43afe44d.pth", 0, "43afe44d"},
    {"regnet_y_16gf", "IMAGENET1K_SWAG_LINEAR_V1", "regnet_y_16gf_lc_swag-f3ec0043.pth", 0, "f3ec0043"},
    {"regnet_y_32gf", "IMAGENET1K_V2", "regnet_y_32gf-8db6d4b5.pth", 0, "8db6d4b5"},
    {"regnet_y_32gf", "IMAGENET1K_V1", "regnet_y_32gf-4dee3f7a.pth", 0, "4dee3f7a"},
    {"regnet_y_32gf", "IMAGENET1K_SWAG_E2E_V1", "regnet_y_32gf_swag-04fdfa75.pth", 0, "04fdfa75"},
    {"regnet_y_32gf", "IMAGENET1K_SWAG_LINEAR_V1", "regnet_y_32gf_lc_swag-e1583746.pth", 0, "e1583746"},
    {"regnet_x_400mf", "IMAGENET1K_V2", "regnet_x_400mf-62229a5f.pth", 0, "62229a5f"},
    {"regnet_x_400mf", "IMAGENET1K_V1", "regnet_x_400mf-adf1edd5.pth", 0, "adf1edd5"},
    {"regnet_x_800mf", "IMAGENET1K_V2", "regnet_x_800mf-94a99ebd.pth", 0, "94a99ebd"},
    {"regnet_x_800mf", "IMAGENET1K_V1", "regnet_x_800mf-ad17e45c.pth", 0, "ad17e45c"},
    {"regnet_x_1_6gf", "IMAGENET1K_V2", "regnet_x_1_6gf-a12f2b72.pth", 0, "a12f2b72"},
    {"regnet_x_1_6gf", "IMAGENET1K_V1", "regnet_x_1_6gf-e3633e7f.pth", 0, "e3633e7f"},
    {"regnet_x_3_2gf", "IMAGENET1K_V2", "regnet_x_3_2gf-7071aa85.pth", 0, "7071aa85"},
    {"regnet_x_3_2gf", "IMAGENET1K_V1", "regnet_x_3_2gf-f342aeae.pth", 0, "f342aeae"},
    {"regnet_x_8gf", "IMAGENET1K_V2", "regnet_x_8gf-2b70d774.pth", 0, "2b70d774"},
    {"regnet_x_8gf", "IMAGENET1K_V1", "regnet_x_8gf-03ceed89.pth", 0, "03ceed89"},
    {"regnet_x_16gf", "IMAGENET1K_V2", "regnet_x_16gf-ba3796d7.pth", 0, "ba3796d7"},
    {"regnet_x_16gf", "IMAGENET1K_V1", "regnet_x_16gf-2007eb11.pth", 0, "2007eb11"},
    {"regnet_x_32gf", "IMAGENET1K_V2", "regnet_x_32gf-6eb8fdc6.pth", 0, "6eb8fdc6"},
    {"regnet_x_32gf", "IMAGENET1K_V1", "regnet_x_32gf-9d47f8d0.pth", 0, "9d47f8d0"},
    {"efficientnet_v2_s", "IMAGENET1K_V1", "efficientnet_v2_s-dd5fe13b.pth", 0, "dd5fe13b"},
    {"efficientnet_v2_m", "IMAGENET1K_V1", "efficientnet_v2_m-dc08266a.pth", 0, "dc08266a"},
    {"efficientnet_v2_l", "IMAGENET1K_V1", "efficientnet_v2_l-59c71312.pth", 0, "59c71312"},
    {"convnext_large", "IMAGENET1K_V1", "convnext_large-ea097f82.pth", 0, "ea097f82"},
    {"vit_b_32", "IMAGENET1K_V1", "vit_b_32-d86f8d99.pth", 0, "d86f8d99"},
    {"vit_l_16", "IMAGENET1K_V1", "vit_l_16-852ce7e3.pth", 0, "852ce7e3"},
    {"vit_l_16", "IMAGENET1K_SWAG_E2E_V1", "vit_l_16_swag-4f3808c9.pth", 0, "4f3808c9"},
    {"vit_l_16", "IMAGENET1K_SWAG_LINEAR_V1", "vit_l_16_lc_swag-4d563306.pth", 0, "4d563306"},
    {"swin_t", "IMAGENET1K_V1", "swin_t-704ceda3.pth", 0, "704ceda3"},
    {"swin_s", "IMAGENET1K_V1", "swin_s-5e29d889.pth", 0, "5e29d889"},
    {"swin_b", "IMAGENET1K_V1", "swin_b-68c6b09e.pth", 0, "68c6b09e"},
    {"swin_v2_t", "IMAGENET1K_V1", "swin_v2_t-b137f0e2.pth", 0, "b137f0e2"},
    {"swin_v2_s", "IMAGENET1K_V1", "swin_v2_s-637d8ceb.pth", 0, "637d8ceb"},
    {"swin_v2_b", "IMAGENET1K_V1", "swin_v2_b-781e5279.pth", 0, "781e5279"},
};

bool begins_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// As names are compared: "ConvNeXt_Tiny" is "convnext-tiny".
std::string plain(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return core::lower_case(name);
}

/// "resnet50.a1_in1k" is a "resnet50", "resnet50d.ra2_in1k" is none.
bool is_called(const std::string& label, const std::string& wanted) {
  const std::string name = plain(label), begin = plain(wanted);
  return begins_with(name, begin) &&
         (name.size() == begin.size() || name[begin.size()] == '-' || name[begin.size()] == '.');
}

const std::pair<const char*, std::vector<std::string>> kTimmsNames[] = {
    {"vit_b_16", {"vit_base_patch16", "deit_base_patch16"}},
    {"vit_s_16", {"vit_small_patch16", "deit_small_patch16"}},
    {"vit_b_32", {"vit_base_patch32"}},
    {"vit_l_16", {"vit_large_patch16"}},
    {"mobilenet_v2", {"mobilenetv2_100"}},
    {"swin_t", {"swin_tiny_patch4_window7"}},
    {"swin_s", {"swin_small_patch4_window7"}},
    {"swin_b", {"swin_base_patch4_window7"}},
    {"regnet_y_400mf", {"regnety_004"}},
    {"regnet_y_800mf", {"regnety_008"}},
    {"regnet_y_1_6gf", {"regnety_016"}},
    {"regnet_y_3_2gf", {"regnety_032"}},
    {"regnet_y_8gf", {"regnety_080"}},
    {"regnet_y_16gf", {"regnety_160"}},
    {"regnet_y_32gf", {"regnety_320"}},
    {"regnet_x_400mf", {"regnetx_004"}},
    {"regnet_x_800mf", {"regnetx_008"}},
    {"regnet_x_1_6gf", {"regnetx_016"}},
    {"regnet_x_3_2gf", {"regnetx_032"}},
    {"regnet_x_8gf", {"regnetx_080"}},
    {"regnet_x_16gf", {"regnetx_160"}},
    {"regnet_x_32gf", {"regnetx_320"}},
};

/// Hugging Face's and timm's names of a network.
std::vector<std::string> other_names(const std::string& network) {
  if (begins_with(network, "resnet")) return {"resnet-" + network.substr(6)};
  if (begins_with(network, "mobilenet_v3_")) return {"mobilenetv3_" + network.substr(13) + "_100"};
  if (begins_with(network, "efficientnet_v2_")) return {"efficientnetv2_" + network.substr(16)};
  for (const auto& [ours, theirs] : kTimmsNames) {
    if (network == ours) return theirs;
  }
  return {};
}

std::string without_hub(const std::string& name) {
  for (const char* const hub : {"hf-hub:", "hf_hub:"}) {
    if (begins_with(name, hub)) return name.substr(7);
  }
  return name;
}

/// The beginnings of the labels of files and repositories.
std::vector<std::string> labels_of(const std::string& name, const std::string& network) {
  std::vector<std::string> labels;
  for (const Published& row : kPublished) {
    if (row.network == network && row.name == name) labels.push_back(last_part(row.file));
  }
  if (!labels.empty()) return labels;
  labels = other_names(name);
  labels.push_back(without_hub(name));
  return labels;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string either(const std::string& first, const std::string& otherwise) { return first.empty() ? otherwise : first; }

std::string below(const std::string& folder, const char* name) { return folder.empty() ? "" : folder + name; }

/// As torch.hub.get_dir() and huggingface_hub's constants have them, and one that Stoker alone reads.
std::vector<std::string> usual_folders() {
  const std::string cache = either(variable("XDG_CACHE_HOME"), below(variable("HOME"), "/.cache"));
  const std::string hub = either(variable("HF_HUB_CACHE"), variable("HUGGINGFACE_HUB_CACHE"));
  std::vector<std::string> folders = {
      variable("STOKER_WEIGHTS"), below(either(variable("TORCH_HOME"), below(cache, "/torch")), "/hub/checkpoints"),
      either(hub, below(either(variable("HF_HOME"), below(cache, "/huggingface")), "/hub"))};
  folders.erase(std::remove(folders.begin(), folders.end(), ""), folders.end());
  return folders;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (auto entry = fs::directory_iterator(folder, ignored); entry != fs::directory_iterator();
       entry.increment(ignored)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

constexpr char kTimm[] = "timm/";

// The folder that command_of_repository() makes for a repository: timm's without their owner.

std::string folder_of_repository(std::string repository) {
  if (begins_with(repository, kTimm)) return last_part(repository);
  const size_t slash = repository.find('/');
  return slash == std::string::npos ? repository : repository.replace(slash, 1, "--");
}

/// Also for a folder of Hugging Face's cache.
std::string repository_of_folder(std::string name) {
  const size_t dashes = name.find("--");
  return dashes == std::string::npos ? kTimm + name : name.replace(dashes, 2, "/");
}

class Search {
 public:
  /// Without labels every file is taken.
  explicit Search(std::vector<std::string> labels) : labels_(std::move(labels)) {}

  void look_into(const std::string& folder) {
    const bool is_folder = fs::is_directory(folder, ignored_);
    found_.folders.push_back(is_folder ? folder : folder + " (absent)");
    for (const fs::path& entry : entries_of(folder)) {
      const std::string name = entry.filename().string();
      if (begins_with(name, "models--")) {
        repository(entry, name.substr(8));
      } else if (fs::is_directory(entry, ignored_)) {
        if (is_wanted(name) || is_wanted_repository(name)) take(weights_of_folder(entry.string()));
      } else {
        file(entry, name);
      }
    }
  }

  LocalWeights result() {
    std::sort(files_.begin(), files_.end());
    for (auto& [age, path] : files_) found_.files.push_back(std::move(path));
    return std::move(found_);
  }

 private:
  bool is_wanted(const std::string& label) const {
    return labels_.empty() || std::any_of(labels_.begin(), labels_.end(),
                                          [&](const std::string& wanted) { return is_called(label, wanted); });
  }

  void file(const fs::path& path, const std::string& name) {
    if (!is_wanted(name)) return;
    if (ends_with(name, ".partial")) return found_.unfinished.push_back(path.string());
    const bool is_part = name.find("-of-0") != std::string::npos;  // of several, behind an index
    if (ends_as_weights(name) && !is_part) take(path.string());
  }

  bool is_wanted_repository(const std::string& folder) const {
    const std::string name = repository_of_folder(folder);
    return is_wanted(name) || is_wanted(last_part(name));
  }

  /// "timm--resnet50.a1_in1k", with a folder for each revision that was fetched.
  void repository(const fs::path& folder, const std::string& name) {
    if (!is_wanted_repository(name)) return;
    for (const fs::path& revision : entries_of(folder / "snapshots")) take(weights_of_folder(revision.string()));
    for (const fs::path& blob : entries_of(folder / "blobs")) {
      if (blob.extension() == ".incomplete") found_.unfinished.push_back(blob.string());
    }
  }

  void take(const std::string& path) {
    if (path.empty()) return;
    const auto time = fs::last_write_time(path, ignored_);
    if (ignored_) return found_.unfinished.push_back(path);
    files_.emplace_back(-time.time_since_epoch().count(), path);
  }

  const std::vector<std::string> labels_;
  std::vector<std::pair<fs::file_time_type::rep, std::string>> files_;  ///< negative times: newest first
  LocalWeights found_;
  std::error_code ignored_;
};

bool is_hex(const std::string& text) { return text.find_first_not_of("0123456789abcdef") == std::string::npos; }

/// The digits of a hash that the content must begin with; "": the name has none.
std::string hash_in_name(const std::string& path) {
  constexpr size_t kBlob = 64, kFewest = 8;
  std::error_code ignored;
  const std::string blob = fs::canonical(path, ignored).filename().string();
  if (blob.size() == kBlob && is_hex(blob)) return blob;
  const std::string name = last_part(path);
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos) return "";
  const std::string digits = name.substr(dash + 1, name.find('.', dash) - dash - 1);
  const bool has_letter = digits.find_first_of("abcdef") != std::string::npos;
  return digits.size() >= kFewest && has_letter && is_hex(digits) ? digits : "";
}

std::string command_of(const std::string& folder, const std::string& file, const std::string& address) {
  return format("curl -L --create-dirs -o {}{}{} {}", folder, folder.empty() ? "" : "/", file, address);
}

std::string command_of_repository(const std::string& folder, const std::string& repository) {
  return command_of(folder, folder_of_repository(repository) + "/model.safetensors",
                    kHub + repository + "/resolve/main/model.safetensors");
}

std::string way_to_fetch(const Published& row, const std::string& folder) {
  const std::string file = row.file;
  if (begins_with(file, kTimm)) return format("timm's {}: {}", row.name, command_of_repository(folder, file));
  const std::string address = begins_with(file, "https:") ? file : kTorchvision + file;
  std::string text = row.name;
  if (row.mebibytes > 0) text += ", " + core::bytes_text(row.mebibytes * (1 << 20));
  return format("{}, SHA-256 {}{}: {}", text, row.sha256, std::string(row.sha256).size() < 64 ? "..." : "",
                command_of(folder, last_part(address), address));
}

}  // namespace

bool ends_as_weights(const std::string& name) {
  for (const char* const ending : {".pth", ".pt", ".bin", ".safetensors", ".pth.tar"}) {
    if (ends_with(name, ending)) return true;
  }
  return false;
}

std::string weights_of_folder(const std::string& folder) {
  std::error_code ignored;
  for (const char* const name :
       {"/model.safetensors.index.json", "/model.safetensors", "/pytorch_model.bin.index.json", "/pytorch_model.bin"}) {
    const fs::file_status status = fs::symlink_status(folder + name, ignored);
    if (fs::is_regular_file(status) || fs::is_symlink(status)) return folder + name;
  }
  return "";
}

LocalWeights find_local_weights(const std::string& name, const std::string& network) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(name, ignored);
  Search search(is_folder ? std::vector<std::string>() : labels_of(name, network));
  for (const std::string& folder : is_folder ? std::vector<std::string>{name} : usual_folders()) {
    search.look_into(folder);
  }
  return search.result();
}

std::string network_of_name(const std::string& name) {
  const std::string label = last_part(without_hub(name));
  for (const Published& row : kPublished) {
    std::vector<std::string> names = other_names(row.network);
    names.emplace_back(row.network);
    const auto is_it = [&](const std::string& wanted) { return is_called(label, wanted); };
    if (std::any_of(names.begin(), names.end(), is_it)) return row.network;
  }
  return "";
}

std::string mismatch_of_name(const std::string& path, const std::string& sha256) {
  const std::string expected = hash_in_name(path);
  if (expected.empty() || begins_with(sha256, expected)) return "";
  // Files that were replaced at their address under the old name.
  const auto is_known = [&](const Published& row) { return *row.sha256 != '\0' && begins_with(sha256, row.sha256); };
  if (std::any_of(std::begin(kPublished), std::end(kPublished), is_known)) return "";
  return format("its SHA-256 begins with {}, not with the {} of its name: damaged, or another file",
                sha256.substr(0, 8), expected.substr(0, 8));
}

std::vector<std::string> ways_to_fetch(const std::string& name, const std::string& network, const std::string& folder) {
  const std::string asked = without_hub(name);
  std::vector<std::string> ways;
  for (const Published& row : kPublished) {
    const bool is_it = row.network == network || is_called(asked, row.network);
    const bool is_other = row.network == network && std::string(row.name) != asked && begins_with(asked, "IMAGENET1K");
    if (is_it && !is_other) ways.push_back(way_to_fetch(row, folder));
  }
  const size_t dot = asked.find('.'), slash = asked.find('/');
  const bool is_tag = dot != std::string::npos && slash == std::string::npos && !ends_as_weights(asked);
  if (!is_tag && slash == std::string::npos) return ways;
  const std::string repository = is_tag ? kTimm + asked : asked;
  return {command_of_repository(folder, repository)};
}

std::vector<std::string> all_published_weights() {
  std::vector<std::string> lines;
  for (const Published& row : kPublished) lines.push_back(format("{}: {}", row.network, way_to_fetch(row, "")));
  return lines;
}

}  // namespace stoker::weights
