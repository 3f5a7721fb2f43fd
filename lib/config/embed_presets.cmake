# SPDX-License-Identifier: Apache-2.0
# Writes a .cpp file that holds every preset as text. Run in script mode:
#   cmake -DCONFIGS=<configs folder> -DOUTPUT=<file.cpp> -P embed_presets.cmake
file(GLOB_RECURSE names RELATIVE "${CONFIGS}" "${CONFIGS}/*.yaml")
list(SORT names)
set(code "// Generated from configs/*.yaml by embed_presets.cmake.\n#include \"config/read/syntax.h\"\n\n")
string(APPEND code "namespace stoker::config {\n\nconst EmbeddedPreset kEmbeddedPresets[] = {\n")
foreach(name IN LISTS names)
  file(READ "${CONFIGS}/${name}" text)
  string(REGEX REPLACE "\\.yaml$" "" preset "${name}")
  string(APPEND code "    {\"${preset}\", R\"preset(${text})preset\"},\n")
endforeach()
string(APPEND code "};\nconst size_t kEmbeddedPresetCount = sizeof kEmbeddedPresets / sizeof kEmbeddedPresets[0];\n\n")
string(APPEND code "}  // namespace stoker::config\n")
file(WRITE "${OUTPUT}" "${code}")
