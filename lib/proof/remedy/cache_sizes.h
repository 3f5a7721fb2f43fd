// SPDX-License-Identifier: Apache-2.0
// A known fault of oneDNN 3.2 to 3.7: where a hypervisor hides the caches of an AMD processor (CPUID leaf 0x8000001D is
// zero), it takes each of them for one byte, and blocks weights and images wrongly. The function that returns
// their sizes is exported by the library; a program that defines it, too, answers in its place.
#pragma once

namespace stoker::proof {

/// Whether the oneDNN of this process takes the caches for smaller than any is, or the processor hides them in the way
/// that its releases with the fault stumble over.
bool cache_sizes_are_wrong();

/// From here on oneDNN is given 32 KiB, 512 KiB and 1 MiB, what its later releases assume for unknown caches, or again
/// what it finds itself.
void override_cache_sizes(bool answer);

}  // namespace stoker::proof
