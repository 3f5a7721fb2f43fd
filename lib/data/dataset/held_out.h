// SPDX-License-Identifier: Apache-2.0
// A part of another source, and the split of a source in two by a hash of the names: of samples or of whole groups.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "data/source.h"

namespace stoker::data {

struct Fold {
  int64_t number = 1, of = 2;  ///< number from 1
};
/// fold:2/5 of --val-split. Throws Error{config} for what only begins so.
std::optional<Fold> fold_of(const config::DataOptions& options);
/// Whether a part of the training split validates: a fraction, or one of several folds.
bool holds_out(const config::DataOptions& options);
/// Whether all samples may be those of training, without a folder of that name: validation takes a part of them, or
/// there is none.
bool has_no_val_split(const config::DataOptions& options);

/// (kept, held out): a sample is held out when the hash of its relative name falls below `fraction`, so that
/// it stays on its side when other samples come or go. Either part may be empty.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out(
    const std::shared_ptr<const Source>& whole, double fraction);

/// hold_out() of each class by itself: of its samples those with the lowest hashes are held out, `fraction`
/// of them, rounded, and at least one of two or more. As hold_out() where there are no classes.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_stratified(
    const std::shared_ptr<const Source>& whole, double fraction);

/// The part `fold` (from 0) of `count`: each sample is in one, by the hash of its name, and of each class as many in
/// one as in another, but for one.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold(
    const std::shared_ptr<const Source>& whole, int64_t fold, int64_t count);

/// hold_out_fold() of whole groups, named as hold_out_groups() has them: the largest first, each to the fold that has
/// the smallest share of its classes.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold_of_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, int64_t fold, int64_t count);

/// hold_out() of whole groups: samples with one name in `groups` [samples] stay together, those without a name are
/// alone. Groups are taken in the order of hashes of their names, each that brings the held-out shares of its classes
/// nearer to `fraction`. A class in several groups has samples on both sides where that can be.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, double fraction);

/// The samples of each class with the lowest hashes: `fraction` of them up to 1, else that number; at least one. A
/// smaller part lies within a larger one. The source itself where that is all.
std::shared_ptr<const Source> part_of_each_class(const std::shared_ptr<const Source>& whole, double fraction);

/// At most `most` samples, evenly spaced; the source itself when it has no more.
std::shared_ptr<const Source> evenly_spaced(const std::shared_ptr<const Source>& whole, int64_t most);

}  // namespace stoker::data
