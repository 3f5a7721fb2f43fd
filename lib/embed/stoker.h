/* SPDX-License-Identifier: Apache-2.0
 * libstoker: predictions of a trained network for images, in C. The same values as those of `train predict` on a CPU.
 *
 *   stoker_network* network = stoker_open("runs/shop", NULL);
 *   float* probabilities = malloc(sizeof(float) * stoker_outputs(network));
 *   stoker_classify_file_bytes(network, bytes, size, probabilities);
 *   stoker_close(network);
 *
 * Functions that can fail return an exit code of docs/reference/exit-codes.md, 0 for success; stoker_error() returns
 * the cause. Networks may be used from any thread; calls on one network wait for each other. */
#ifndef STOKER_H
#define STOKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STOKER_API __attribute__((visibility("default")))

typedef struct stoker_network stoker_network;

/* "0.1.0" */
STOKER_API const char* stoker_version(void);

/* Of an image as the network sees it: height times width in preprocess.json. stoker_open() refuses more, so that the
 * memory of one image is bounded whatever a checkpoint claims. */
#define STOKER_MOST_PIXELS 16777216

/* Opens a run directory, or one checkpoint of it. `which`: "best" or "last" of a run; NULL: the best. NULL on failure:
 * stoker_error() returns the cause. */
STOKER_API stoker_network* stoker_open(const char* run_or_checkpoint, const char* which);

/* Numbers in an answer: one per class, label or target. */
STOKER_API int64_t stoker_outputs(const stoker_network* network);

/* The name of class, label or target `index`; NULL out of range. Lives as long as the network. */
STOKER_API const char* stoker_name(const stoker_network* network, int64_t index);

/* How an image becomes what the network sees, and what its outputs mean: preprocess.json of the checkpoint. Lives as
 * long as the network. */
STOKER_API const char* stoker_preprocess_json(const stoker_network* network);

/* `bytes`: an image file (JPEG, PNG, WebP, BMP). `predictions`: space for stoker_outputs() numbers: probabilities, or
 * numbers in the unit of the targets. */
STOKER_API int stoker_classify_file_bytes(stoker_network* network, const void* bytes, size_t size, float* predictions);

/* `pixels`: height x width x channels bytes without gaps, rows from top to bottom; channels 1 (gray) or 3 (red, green,
 * blue). Any size: resized and cropped as the run does it. */
STOKER_API int stoker_classify_pixels(stoker_network* network, const uint8_t* pixels, int64_t height, int64_t width,
                                      int64_t channels, float* predictions);

/* Frees a network. NULL is nothing. */
STOKER_API void stoker_close(stoker_network* network);

/* Why the last call of this thread failed; "" when it did not. Valid until the next call. */
STOKER_API const char* stoker_error(void);

#ifdef __cplusplus
}
#endif

#endif
