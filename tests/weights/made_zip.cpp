// SPDX-License-Identifier: Apache-2.0
#include "tests/weights/made_zip.h"

#include <zlib.h>

#include "tests/weights/made_pickle.h"

namespace stoker::fixtures {
namespace {

std::string deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

std::string made_zip(const std::vector<MadeMember>& members, bool zip64_end) {
  std::string file, directory;
  for (const MadeMember& member : members) {
    const std::string stored = member.deflated ? deflated(member.content) : member.content;
    const uint64_t checksum = member.checksum ? crc32(0, reinterpret_cast<const Bytef*>(member.content.data()),
                                                      static_cast<uInt>(member.content.size()))
                                              : 0;
    const uint64_t full = 0xFFFFFFFF;
    const std::string sizes = little_endian(member.zip64 ? full : stored.size(), 4) +
                              little_endian(member.zip64 ? full : member.content.size(), 4);
    const std::string method = little_endian(member.deflated ? 8 : 0, 2), time(4, '\0');
    std::string extra;
    if (member.zip64) {
      extra = little_endian(1, 2) + little_endian(24, 2) + little_endian(member.content.size(), 8) +
              little_endian(stored.size(), 8) + little_endian(file.size(), 8);
    }
    directory += "PK\1\2" + std::string(4, '\0') + little_endian(0, 2) + method + time + little_endian(checksum, 4) +
                 sizes + little_endian(member.name.size(), 2) + little_endian(extra.size(), 2) + std::string(10, '\0') +
                 little_endian(member.zip64 ? full : file.size(), 4) + member.name + extra;
    file += "PK\3\4" + std::string(2, '\0') + little_endian(0, 2) + method + time + little_endian(checksum, 4) + sizes +
            little_endian(member.name.size(), 2) + little_endian(static_cast<uint64_t>(member.padding), 2) +
            member.name + std::string(static_cast<size_t>(member.padding), 'Z') + stored;
  }
  const uint64_t begin = file.size(), bytes = directory.size(), count = members.size();
  file += directory;
  if (zip64_end) {
    const uint64_t end = file.size();
    file += "PK\6\6" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) + std::string(8, '\0') +
            little_endian(count, 8) + little_endian(count, 8) + little_endian(bytes, 8) + little_endian(begin, 8);
    file += "PK\6\7" + std::string(4, '\0') + little_endian(end, 8) + little_endian(1, 4);
  }
  return file + "PK\5\6" + std::string(4, '\0') + little_endian(count, 2) + little_endian(count, 2) +
         little_endian(bytes, 4) + little_endian(begin, 4) + std::string(2, '\0');
}

}  // namespace stoker::fixtures
