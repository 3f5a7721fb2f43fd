/* SPDX-License-Identifier: Apache-2.0
 * classify RUN IMAGE...: the most probable class of each image. */
#include <stdio.h>
#include <stdlib.h>
#include <stoker.h>

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  stoker_network* network = stoker_open(argv[1], NULL);
  if (network == NULL) {
    fprintf(stderr, "%s\n", stoker_error());
    return 66;
  }
  const int64_t count = stoker_outputs(network);
  float* predictions = malloc(sizeof(float) * (size_t)count);
  static unsigned char bytes[1 << 24];
  for (int i = 2; i < argc; ++i) {
    FILE* file = fopen(argv[i], "rb");
    const size_t size = file == NULL ? 0 : fread(bytes, 1, sizeof bytes, file);
    if (file != NULL) fclose(file);
    const int code = stoker_classify_file_bytes(network, bytes, size, predictions);
    if (code != 0) {
      fprintf(stderr, "%s: %s\n", argv[i], stoker_error());
      return code;
    }
    int64_t best = 0;
    for (int64_t k = 1; k < count; ++k) best = predictions[k] > predictions[best] ? k : best;
    printf("%s %s %.6f\n", argv[i], stoker_name(network, best), predictions[best]);
  }
  free(predictions);
  stoker_close(network);
  return 0;
}
