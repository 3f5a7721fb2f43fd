// SPDX-License-Identifier: Apache-2.0
// A folder to work in and data sets small enough to train on in a blink. Independent of the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program.h"
#include "temporary_directory.h"

namespace stoker::cli {

using Workplace = fixtures::TemporaryDirectory;

/// 8x8 gray images; classes 0 to 9 in turn, one brightness each.
/// Images of one gray each: brightness, brightness + 20, ..., brightness + 180, and again.
std::string idx_images(uint32_t count, uint32_t magic = 0x803, uint8_t brightness = 0);
std::string idx_labels(uint32_t count, uint32_t magic = 0x801, uint8_t first_label = 0);
/// data/{train,t10k}-{images-idx3,labels-idx1}-ubyte with 64 and 20 images.
void write_idx(const Workplace& work, uint32_t train_images = 64);

/// Whole files of one colour.
std::string png_of(uint32_t width, uint32_t height, uint8_t gray);
std::string jpeg_of(int width, int height, uint8_t gray);
/// A PNG header that promises width x height pixels, and next to nothing after it.
std::string png_bomb(uint32_t width, uint32_t height);
/// data/{train,val}/{cat,dog}/{0..3}.png
void write_folders(const Workplace& work);
/// data/images/{0..7}.png, and data/{train,val}.csv that list them with labels 0 and 1 in turn.
void write_csv(const Workplace& work);

std::string gzipped(const std::string& content);
void append(const std::string& path, const std::string& content);
std::string content_of_file(const std::string& path);

/// A folder as it is, links and all.
void copy_folder(const std::string& from, const std::string& to);
/// Every file and link below a folder with what it holds, one per line: two folders are equal when this is.
std::string listing_of(const std::string& folder);

/// A training run of one epoch of 4 updates on data/ into run/, with `more` words behind.
Words train_words(const Words& more = {});

}  // namespace stoker::cli
