// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "commands/audit/audited.h"
#include "core/error.h"
#include "core/text/base64.h"
#include "data/image/jpeg/jpeg_encode.h"
#include "data/probe/probe_sizes.h"
#include "data/resample/resample.h"
#include "observe/report/page.h"

namespace stoker::train {
namespace {

using core::count_text;
using core::format;
using data::DuplicateGroup;
using observe::escape_html;

constexpr size_t kShownGroups = 60, kShownMembers = 6, kShownSamples = 60, kShownLines = 200;

class AuditPage {
 public:
  AuditPage(const Audited& audited, const data::DecodeLimits& limits) : audited_(audited), limits_(limits) {}

  std::string body() const {
    return overview() +
           groups("The same image in several splits", [](const DuplicateGroup& group) { return group.across_splits; }) +
           groups("The same image with other labels", [](const DuplicateGroup& group) { return group.labels_differ; }) +
           suspects() + corrupt() + one_colour() + groups("The same image otherwise", [](const DuplicateGroup& group) {
             return !group.across_splits && !group.labels_differ;
           });
  }

 private:
  const data::AuditFindings& found() const { return audited_.findings; }

  std::string overview() const {
    std::string html = format("<p>{} samples, audited in {}.</p><div class=\"scroll\" tabindex=\"0\"><table>\n",
                              count_text(found().samples()), core::duration_text(audited_.seconds));
    html += "<tr><th></th>";
    for (const data::SplitFindings& split : found().splits)
      html += "<th class=\"n\">" + escape_html(split.name) + "</th>";
    html += "</tr>\n" + row("samples", [](const data::SplitFindings& split) { return split.samples; });
    for (size_t k = 0; !found().is_numeric_task && k < found().learned_names.size(); ++k) {
      html += row(found().learned_names[k], [&](const data::SplitFindings& split) { return split.class_samples[k]; });
    }
    return html + "</table></div>\n<p>Sizes: " + tallies(found().sizes) + ".</p>\n<p>Kinds: " + tallies(found().kinds) +
           ".</p>\n";
  }

  template <typename Count>
  std::string row(const std::string& name, const Count& count) const {
    std::string html = "<tr><th>" + escape_html(name) + "</th>";
    for (const data::SplitFindings& split : found().splits) {
      html += "<td class=\"n\">" + count_text(count(split)) + "</td>";
    }
    return html + "</tr>\n";
  }

  static std::string tallies(const std::vector<data::Tally>& tallies) {
    constexpr size_t kShown = 12;
    std::string html;
    for (size_t i = 0; i < std::min(kShown, tallies.size()); ++i) {
      html += format("{}{}: {}", i > 0 ? "; " : "", escape_html(tallies[i].what), count_text(tallies[i].samples));
    }
    return tallies.size() > kShown ? html + format("; and {} more", tallies.size() - kShown) : html;
  }

  /// A picture with lines of text, which are HTML.
  std::string figure(const data::SampleAt& at, const std::string& caption) const {
    const std::string jpeg = sample_picture(audited_.source_of(at), at.index, limits_);
    const std::string image =
        jpeg.empty() ? "" : format("<img alt=\"sample\" src=\"data:image/jpeg;base64,{}\">", jpeg);
    return format("<figure>{}{}<br><span class=\"faint\">{}</span></figure>\n", image, caption,
                  escape_html(audited_.name_of(at)));
  }

  std::string heading(const std::string& title, size_t all, size_t shown) const {
    std::string html = format("<h2>{}: {}</h2>\n", title, count_text(static_cast<int64_t>(all)));
    if (all > shown) html += format("<p class=\"faint\">The first {} are shown; --json lists all.</p>\n", shown);
    return html;
  }

  template <typename Wanted>
  std::string groups(const std::string& title, const Wanted& wanted) const {
    std::string html;
    size_t all = 0;
    for (const DuplicateGroup& group : found().groups) {
      if (!wanted(group) || ++all > kShownGroups) continue;
      html += format("<p>{}</p><div class=\"pictures\">\n", group.exact ? "equal" : "near");
      for (const data::SampleAt& member : group.examples(kShownMembers)) {
        html += figure(member, "<b>" + escape_html(audited_.label_of(member)) + "</b>");
      }
      html += "</div>\n";
      if (group.members.size() > kShownMembers) {
        html += format("<p class=\"faint\">and {} more</p>\n", group.members.size() - kShownMembers);
      }
    }
    return all == 0 ? "" : heading(title + ", groups", all, kShownGroups) + html;
  }

  std::string suspects() const {
    std::string html;
    for (size_t i = 0; i < audited_.suspects.size(); ++i) {
      const SplitSuspects& of = audited_.suspects[i];
      html += format("<h2>Labels of {} that look wrong", escape_html(audited_.splits[i].name));
      html += of.estimated_wrong >= 0
                  ? format(": about {} of {}</h2>\n", count_text(of.estimated_wrong), count_text(of.judged))
                  : "</h2>\n";
      html += format("<p class=\"faint\">The largest losses first, by {} checkpoints of {}",
                     audited_.checkpoints.size(), escape_html(core::printable(audited_.run)));
      html += of.agreed >= 0 ? format(", the last of which agrees with {} labels", count_text(of.agreed)) : "";
      html += ".</p><div class=\"pictures\">\n";
      for (size_t k = 0; k < std::min(kShownSamples, of.most_suspect.size()); ++k) {
        const LabelSuspect& suspect = of.most_suspect[k];
        const std::string sure =
            std::isnan(suspect.confidence) ? "" : format(" {:.0f} %", std::floor(100 * suspect.confidence));
        html += figure(suspect.at, format("is <b>{}</b><br>looks like <b>{}</b>{}<br>loss {:.2f}",
                                          escape_html(audited_.label_of(suspect.at)), escape_html(suspect.looks_like),
                                          sure, suspect.loss));
      }
      html += "</div>\n";
    }
    return html;
  }

  std::string corrupt() const {
    if (found().bad.empty()) return "";
    std::string html =
        heading("Corrupt", found().bad.size(), kShownLines) + "<div class=\"scroll\" tabindex=\"0\"><table>\n";
    for (size_t i = 0; i < std::min(kShownLines, found().bad.size()); ++i) {
      html += format("<tr><td>{}</td><td>{}</td></tr>\n", escape_html(audited_.name_of(found().bad[i].at)),
                     escape_html(audited_.reason_of(found().bad[i])));
    }
    return html + "</table></div>\n";
  }

  std::string one_colour() const {
    if (found().one_value.empty()) return "";
    std::string html = heading("Of one colour", found().one_value.size(), kShownSamples) + "<div class=\"pictures\">\n";
    for (size_t i = 0; i < std::min(kShownSamples, found().one_value.size()); ++i) {
      html += figure(found().one_value[i], "<b>" + escape_html(audited_.label_of(found().one_value[i])) + "</b>");
    }
    return html + "</div>\n";
  }

  const Audited& audited_;
  const data::DecodeLimits& limits_;
};

}  // namespace

std::string audit_page(const Audited& audited, const data::DecodeLimits& limits, const std::string& made_by,
                       const std::string& time) {
  return observe::page_of(core::printable(audited.data_dir), "Audit by " + made_by, time,
                          AuditPage(audited, limits).body());
}

namespace {

constexpr int kLongestSide = 112;  // pixels
constexpr int kQuality = 85;

/// Packed pixels of 1 or 3 channels.
std::string jpeg_of(const uint8_t* pixels, int width, int height, int channels) {
  const double scale = std::min(1.0, static_cast<double>(kLongestSide) / std::max(width, height));
  const auto scaled = [&](int side) { return std::max(1, static_cast<int>(std::lround(side * scale))); };
  data::ResampleTask task;
  task.source = pixels;
  task.source_stride = int64_t{width} * channels;
  task.source_width = width;
  task.source_height = height;
  task.channels = channels;
  task.resized_width = task.out_width = scaled(width);
  task.resized_height = task.out_height = scaled(height);
  std::vector<uint8_t> small(static_cast<size_t>(task.out_width) * static_cast<size_t>(task.out_height) *
                             static_cast<size_t>(channels)),
      jpeg;
  data::ResampleScratch scratch;
  data::resample(task, scratch, small.data());
  data::encode_jpeg(small.data(), task.out_width, task.out_height, channels, kQuality, jpeg);
  return core::base64(jpeg);
}

}  // namespace

std::string sample_picture(const data::Source& source, int64_t index, const data::DecodeLimits& limits) {
  std::vector<uint8_t> buffer;
  data::SampleContent content;
  const data::FrameSource* const videos = source.frames();
  const std::string reason = videos == nullptr
                                 ? source.read(index, buffer, content)
                                 : videos->read_frame(index, videos->frame_count(index) / 2, buffer, content);
  if (!reason.empty()) return "";
  if (content.element != data::Element::uint8 || content.is_pixels()) {
    const data::Picture picture =
        data::picture_of(content.bytes, {0, content.height, content.width, content.channels, content.element, 1});
    return jpeg_of(picture.pixels.data(), static_cast<int>(picture.width), static_cast<int>(picture.height),
                   static_cast<int>(picture.channels));
  }
  try {
    data::ImageHeader header;
    data::ImageBuffer image;
    if (!data::read_header(content.bytes, content.size, limits, header).empty()) return "";
    const int channels = header.channels == 1 ? 1 : 3;
    if (!data::decode_image(content.bytes, content.size, channels, limits, image).empty()) return "";
    return jpeg_of(image.pixels.data(), image.width, image.height, channels);
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data) throw;
    return "";  // took too long
  }
}

}  // namespace stoker::train
