# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<GoogleTest program> -DPREFIX=<words> -DFILTER=<gtest filter> -DSLOW=<regex>
#       -DPROPERTIES=<of set_tests_properties> -DOUTPUT=<file> -P discover_suites.cmake
# Writes ctest entries for the suites of the program, up to four in each, named PREFIX and the suites, so that `ctest -R`
# finds each of them. They have the label fast, or slow where SLOW matches. Suites that are named ...TimingTest run alone and
# have the label timing, too.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=${FILTER}
                OUTPUT_VARIABLE listing RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${failed}")
endif()
string(REPLACE ";" "," listing "${listing}")
string(REPLACE "\n" ";" lines "${listing}")
set(entries "")

# Appends an entry of these suites, with this label.
function(add_entry label)
  string(JOIN "+" name ${ARGN})
  list(TRANSFORM ARGN APPEND ".*" OUTPUT_VARIABLE filters)
  string(JOIN ":" filter ${filters})
  if(FILTER MATCHES "^-")
    string(APPEND filter "${FILTER}")
  endif()
  string(APPEND entries "add_test([=[${PREFIX}${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
                        "set_tests_properties([=[${PREFIX}${name}]=] PROPERTIES LABELS ${label} ${PROPERTIES})\n")
  if(name MATCHES "TimingTest$")
    string(APPEND entries "set_tests_properties([=[${PREFIX}${name}]=] PROPERTIES LABELS [=[fast;timing]=] RUN_SERIAL TRUE)\n")
  endif()
  set(entries "${entries}" PARENT_SCOPE)
endfunction()

set(together "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^([A-Za-z0-9_/]+)\\.")
    continue()
  endif()
  set(suite ${CMAKE_MATCH_1})
  if(SLOW AND suite MATCHES "^(${SLOW})$")
    add_entry(slow ${suite})
    continue()
  endif()
  if(suite MATCHES "TimingTest$")
    add_entry(fast ${suite})
    continue()
  endif()
  list(APPEND together ${suite})
  list(LENGTH together count)
  if(count EQUAL 4)
    add_entry(fast ${together})
    set(together "")
  endif()
endforeach()
if(together)
  add_entry(fast ${together})
endif()
file(WRITE ${OUTPUT} "${entries}")
