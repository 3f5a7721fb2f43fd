# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<GoogleTest program> -DPREFIX=<words> -DFILTER=<gtest filter> -DPROPERTIES=<of set_tests_properties>
#       [-DLAUNCH=<command>] -DOUTPUT=<file> -P discover_suites.cmake
# Writes one ctest entry per suite of the program, named PREFIX and the suite; LAUNCH starts the program. Suites that are
# named ...TimingTest run alone and have the label timing.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=${FILTER}
                OUTPUT_VARIABLE listing RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${failed}")
endif()
string(REPLACE ";" "," listing "${listing}")
string(REPLACE "\n" ";" lines "${listing}")
set(entries "")
set(launch "")
foreach(word IN LISTS LAUNCH)
  string(APPEND launch "[=[${word}]=] ")
endforeach()
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.")
    set(suite ${CMAKE_MATCH_1})
    set(filter "${suite}.*")
    if(FILTER MATCHES "^-")
      string(APPEND filter "${FILTER}")
    endif()
    string(APPEND entries "add_test([=[${PREFIX}${suite}]=] ${launch}[=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
                          "set_tests_properties([=[${PREFIX}${suite}]=] PROPERTIES ${PROPERTIES})\n")
    if(suite MATCHES "TimingTest$")
      string(APPEND entries "set_tests_properties([=[${PREFIX}${suite}]=] PROPERTIES LABELS [=[fast;timing]=] RUN_SERIAL TRUE)\n")
    endif()
  endif()
endforeach()
file(WRITE ${OUTPUT} "${entries}")
