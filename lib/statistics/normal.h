// SPDX-License-Identifier: Apache-2.0
// The standard normal distribution.
#pragma once

namespace stoker::statistics {

/// Probability of a value up to x.
double normal_below(double x);
/// Its inverse, p in [0, 1]; infinite at the ends. Acklam's rational approximation ("An algorithm for computing the
/// inverse normal cumulative distribution function", 2003) and one step of Halley: 15 digits.
double normal_quantile(double p);

}  // namespace stoker::statistics
