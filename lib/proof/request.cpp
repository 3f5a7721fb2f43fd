// SPDX-License-Identifier: Apache-2.0
#include "proof/request.h"

namespace stoker::proof {

core::Json to_json(const Request& request) {
  const model::ModelSpec& network = request.network;
  core::Json passes = core::Json::array();
  for (const Pass& pass : request.passes) {
    passes.push_back({{"trains", pass.trains},
                      {"images", pass.images},
                      {"autocast", pass.autocast},
                      {"channels_last", pass.channels_last},
                      {"threads", pass.threads}});
  }
  return {{"network",
           {{"name", network.name},
            {"in_chans", network.in_chans},
            {"num_classes", network.num_classes},
            {"img_size", network.img_size},
            {"width", network.width},
            {"backbone", network.backbone},
            {"lstm_channels", network.lstm_channels},
            {"drop_rate", network.drop_rate},
            {"drop_path_rate", network.drop_path_rate},
            {"zero_init_residual", network.zero_init_residual}}},
          {"network_digest", request.network_digest},
          {"freeze", request.freeze},
          {"trusts_network_file", request.trusts_network_file},
          {"input", request.input},
          {"device", request.device},
          {"deterministic", request.deterministic},
          {"tf32", request.tf32},
          {"passes", passes}};
}

Request request_from_json(const core::Json& json) {
  Request request;
  const core::Json& network = json.at("network");
  network.at("name").get_to(request.network.name);
  network.at("in_chans").get_to(request.network.in_chans);
  network.at("num_classes").get_to(request.network.num_classes);
  network.at("img_size").get_to(request.network.img_size);
  network.at("width").get_to(request.network.width);
  network.at("backbone").get_to(request.network.backbone);
  network.at("lstm_channels").get_to(request.network.lstm_channels);
  network.at("drop_rate").get_to(request.network.drop_rate);
  network.at("drop_path_rate").get_to(request.network.drop_path_rate);
  network.at("zero_init_residual").get_to(request.network.zero_init_residual);
  json.at("network_digest").get_to(request.network_digest);
  json.at("freeze").get_to(request.freeze);
  json.at("trusts_network_file").get_to(request.trusts_network_file);
  json.at("input").get_to(request.input);
  json.at("device").get_to(request.device);
  json.at("deterministic").get_to(request.deterministic);
  json.at("tf32").get_to(request.tf32);
  for (const core::Json& pass : json.at("passes")) {
    request.passes.push_back({pass.at("trains").get<bool>(), pass.at("images").get<int64_t>(),
                              pass.at("autocast").get<std::string>(), pass.at("channels_last").get<bool>(),
                              pass.at("threads").get<int64_t>()});
  }
  return request;
}

}  // namespace stoker::proof
