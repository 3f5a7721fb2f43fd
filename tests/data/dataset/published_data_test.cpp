// SPDX-License-Identifier: Apache-2.0
// Data sets as they are published and unpacked, and lists as people have them: each row of a table makes a small one.
#include <gtest/gtest.h>

#include "tests/data/dataset/read_data_set.h"

namespace stoker::data {
namespace {

TEST(PublishedDataTest, DataSetsAreReadAsTheirArchivesUnpack) {
  const auto pets = [](const TempFolder& at) {
    write_images(at, {"images/Abyssinian_1.jpg", "images/beagle_2.jpg", "images/great_dane_3.jpg"});
    at.write("annotations/trainval.txt", "Abyssinian_1 1 1 1\nbeagle_2 5 2 1\n");
    at.write("annotations/test.txt", "beagle_2 5 2 1\n");
    at.write("annotations/list.txt", "#Image CLASS-ID SPECIES BREED ID\nAbyssinian_1 1 1 1\n");
  };
  expect_all({
      {"TinyImageNet",
       [](const TempFolder& at) {
         write_images(at, {"train/n01/images/n01_0.JPEG", "train/n02/images/n02_0.JPEG", "val/images/val_0.JPEG",
                           "val/images/val_1.JPEG"});
         at.write("train/n01/n01_boxes.txt", "n01_0.JPEG 0 0 1 1\n");
         at.write("wnids.txt", "n02\nn01\n");
         at.write("val/val_annotations.txt", "val_0.JPEG\tn02\t0\t0\t1\t1\nval_1.JPEG\tn01\t0\t0\t1\t1\n");
       },
       "n01 n02 / n02 n01 of n01|n02"},
      {"FlatImageNet",
       [](const TempFolder& at) {
         write_images(at, {"train/n01/a.JPEG", "train/n02/b.JPEG", "val/ILSVRC2012_val_00000001.JPEG",
                           "val/ILSVRC2012_val_00000002.JPEG"});
         at.write("ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", "2\n1\n");
       },
       "n01 n02 / n02 n01 of n01|n02"},
      {"FlatImageNetWithItsMap",
       [](const TempFolder& at) {
         write_images(at, {"train/n01/a.JPEG", "train/n02/b.JPEG", "val/1.JPEG", "val/2.JPEG"});
         at.write("ILSVRC2012_validation_ground_truth.txt", "2\n1\n");
         at.write("map_clsloc.txt", "n01 2 kit_fox\nn02 1 setter\n");
       },
       "n01 n02 / n01 n02 of n01|n02"},
      {"FlatValidationOfCaffe",
       [](const TempFolder& at) {
         write_images(at, {"train/n01/a.JPEG", "train/n02/b.JPEG", "val/1.JPEG", "val/2.JPEG"});
         at.write("val.txt", "1.JPEG 1\n2.JPEG 0\n");
       },
       "n01 n02 / n02 n01 of n01|n02"},
      {"KagglesImageNet",
       [](const TempFolder& at) {
         write_images(at, {"train/n01/a.JPEG", "train/n02/b.JPEG", "val/v1.JPEG", "val/v2.JPEG"});
         at.write("LOC_val_solution.csv", "ImageId,PredictionString\nv1,n02 1 2 3 4\nv2,n01 1 2 3 4 n01 5 6 7 8\n");
       },
       "n01 n02 / n02 n01 of n01|n02"},
      {"FlatValidationWithoutAList",
       [](const TempFolder& at) {
         write_images(at, {"train/n01/a.JPEG", "train/n02/b.JPEG", "val/1.JPEG", "val/2.JPEG"});
       },
       "DIR/val holds 2 images and no folder per class # move them into val/<class>/"},
      {"Gtsrb",
       [](const TempFolder& at) {
         write_images(at, {"Final_Training/Images/00000/0.ppm", "Final_Training/Images/00007/0.ppm",
                           "Final_Test/Images/00000.ppm", "Final_Test/Images/00001.ppm"});
         at.write("Final_Training/Images/00000/GT-00000.csv", "Filename;Width;ClassId\n0.ppm;1;0\n");
         at.write("GT-final_test.csv", "Filename;Width;Height;ClassId\n00000.ppm;1;1;7\n00001.ppm;1;1;0\n");
       },
       "00000 00007 / 00007 00000 of 00000|00007"},
      {"OxfordPets", pets, "Abyssinian beagle / beagle of Abyssinian|beagle"},
      {"Food101",
       [](const TempFolder& at) {
         write_images(at, {"images/pie/1.jpg", "images/soup/2.jpg"});
         at.write("meta/train.txt", "pie/1\nsoup/2\n");
         at.write("meta/test.txt", "soup/2\n");
       },
       "pie soup / soup of pie|soup"},
      {"Dtd",
       [](const TempFolder& at) {
         write_images(at, {"images/banded/1.jpg", "images/dotted/1.jpg", "images/dotted/2.jpg", "images/dotted/3.jpg"});
         at.write("labels/train1.txt", "banded/1.jpg\ndotted/1.jpg\n");
         at.write("labels/val1.txt", "dotted/2.jpg\n");
         at.write("labels/test1.txt", "dotted/3.jpg\n");
         at.write("labels/labels_joint_anno.txt", "banded/1.jpg banded\n");
       },
       "banded dotted / dotted of banded|dotted"},
      {"FgvcAircraft",
       [](const TempFolder& at) {
         write_images(at, {"data/images/0034309.jpg", "data/images/1025794.jpg", "data/images/1340192.jpg"});
         at.write("data/images_variant_train.txt", "1025794 A310\n0034309 Boeing 707-320\n");
         at.write("data/images_variant_val.txt", "1340192 Boeing 707-320\n1025794 A310\n");
         at.write("data/images_family_train.txt", "1025794 A310\n");
         at.write("data/variants.txt", "A310\nBoeing 707-320\n");
       },
       "A310 Boeing 707-320 / Boeing 707-320 A310 of A310|Boeing 707-320"},
      {"NearNames",
       [](const TempFolder& at) {
         write_images(at, {"Training/a/1.png", "Training/b/1.png", "Testing/b/2.png"});
       },
       "a b / b of a|b"},
      {"NamesWithTrainAndVal",
       [](const TempFolder& at) {
         write_images(at, {"Train Data/a/1.png", "Train Data/b/1.png", "my_valset/b/2.png", "my_valset/a/2.png"});
       },
       "a b / a b of a|b"},
      {"FoldersInFoldersOfTheirName",
       [](const TempFolder& at) {
         write_images(at, {"seg_train/seg_train/a/1.png", "seg_train/seg_train/b/1.png", "seg_test/seg_test/a/2.png",
                           "seg_test/seg_test/b/2.png", "seg_pred/seg_pred/3.png"});
       },
       "a b / a b of a|b"},
      {"TrainInTrain",
       [](const TempFolder& at) {
         write_images(at, {"train/train/a/1.png", "train/train/b/1.png", "test/test/b/2.png", "train/__MACOSX/x.png"});
       },
       "a b / b of a|b"},
      {"BesideAnnotations",
       [](const TempFolder& at) {
         write_images(at, {"images/train/a/1.png", "images/train/b/1.png", "images/val/b/2.png"});
         at.write("annotations/readme.md", "x");
       },
       "a b / b of a|b"},
      {"BesideLeftoversOfMacs",
       [](const TempFolder& at) {
         write_images(at, {"set/train/a/1.png", "set/train/b/1.png", "set/val/b/2.png", "__MACOSX/set/train/c/1.png"});
       },
       "a b / b of a|b"},
      {"TwoFoldersDown",
       [](const TempFolder& at) {
         write_images(at, {"x/y/train/a/1.png", "x/y/train/b/1.png", "x/y/val/b/2.png"});
       },
       "a b / b of a|b"},
      {"Roboflow",
       [](const TempFolder& at) {
         write_images(at, {"train/1.jpg", "train/2.jpg", "valid/1.jpg"});
         at.write("train/_classes.csv", "filename, cat, dog\n1.jpg, 0, 1\n2.jpg, 1, 0\n");
         at.write("valid/_classes.csv", "filename, cat, dog\n1.jpg, 1, 0\n");
       },
       "dog cat / cat of cat|dog"},
      {"HuggingFacesImageFolder",
       [](const TempFolder& at) {
         write_images(at, {"train/1.jpg", "train/2.jpg", "test/1.jpg"});
         at.write("train/metadata.csv", "file_name,label\n1.jpg,x\n2.jpg,y\n");
         at.write("test/metadata.csv", "file_name,label\n1.jpg,y\n");
       },
       "x y / y of x|y"},
      {"InOneFolder",
       [](const TempFolder& at) {
         write_images(at, {"photos/train/a/1.png", "photos/train/b/1.png", "photos/valid/b/2.png"});
       },
       "a b / b of a|b"},
  });
}

TEST(PublishedDataTest, ListsAreReadAsPeopleHaveThem) {
  const auto two_lists = [](const std::string& ending, const std::string& train, const std::string& val) {
    return [=](const TempFolder& at) {
      write_images(at, {"a.png", "b.png", "sub/c d.png", "train_images/k1.jpg", "train_images/k2.jpg"});
      at.write("train" + ending, train);
      at.write("val" + ending, val);
    };
  };
  std::string pixels_of_a_row;
  for (int i = 0; i < 784; ++i) pixels_of_a_row += ",7";
  expect_all({
      {"IdsWithoutExtension", two_lists(".csv", "id,breed\nk1,pug\nk2,boxer\n", "id,breed\nk2,pug\n"),
       "pug boxer / pug of boxer|pug"},
      {"Tsv", two_lists(".tsv", "path\tlabel\na.png\tx\nb.png\ty\n", "path\tlabel\nsub/c d.png\ty\n"),
       "x y / y of x|y"},
      {"Caffe", two_lists(".txt", "a.png 0\nb.png 1\n", "b.png 1\n"), "0 1 / 1 of 0|1"},
      {"CaffeWithBlanks", two_lists(".txt", "b.png 0\nsub/c d.png 1\n", "sub/c d.png 1\n"), "0 1 / 1 of 0|1"},
      {"CaffeWithBlanksInEachLine", two_lists(".txt", "sub/c d.png 1\n", "sub/c d.png 0\n"), "1 / 0 of 0|1"},
      {"NamesOfClassesWithBlanks", two_lists(".txt", "a.png red fox\nb.png dog\n", "sub/c d.png red fox\nb.png dog\n"),
       "red fox dog / red fox dog of dog|red fox"},
      {"LabelsFirst", two_lists(".txt", "0 a.png\n1 b.png\n", "1 b.png\n"), "0 1 / 1 of 0|1"},
      {"NumbersBeforePaths",
       two_lists(".txt", "0 a.png x\n1 b.png y\n2 a.png x\n", "1 b.png y\n2 b.png y\n3 b.png y\n"),
       "x y x / y y y of x|y"},
      {"ALineThatLacksANumber", two_lists(".txt", "a.png 1 2\nb.png 1\n", "b.png 1 2\n"),
       "train.txt:2: 2 fields where the first line has 3"},
      {"UpperCase", two_lists(".CSV", "Path,Label\na.png,x\nb.png,y\n", "PATH,LABEL\nb.png,y\n"), "x y / y of x|y"},
      {"UpperCaseNames",
       [](const TempFolder& at) {
         write_images(at, {"a.png", "b.png"});
         at.write("TRAIN.CSV", "path,label\na.png,x\nb.png,y\n");
         at.write("Val.csv", "path,label\nb.png,y\n");
       },
       "x y / y of x|y"},
      {"NoHeader", two_lists(".csv", "a.png,x\nb.png,y\n", "b.png,y\n"), "x y / y of x|y"},
      {"Windows", two_lists(".csv", "path,label\nsub\\c d.png,x\nb.png,y\n", "path,label\nb.png,y\n"), "x y / y of"},
      {"AFolderThatIsNotThere",
       two_lists(".csv", "path,label\n/data/old/a.png,x\nold/b.png,y\n", "path,label\nb.png,y\n"), "x y / y of x|y"},
      {"ZerosInFront", two_lists(".csv", "path,label\na.png,10\nb.png,007\n", "path,label\nb.png,007\n"),
       "10 007 / 007 of 007|10"},
      {"Ids", two_lists(".csv", "path,label\na.png,12345678\nb.png,3\n", "path,label\nb.png,3\n"),
       "12345678 3 / 3 of 12345678|3"},
      {"OneHot", two_lists(".csv", "path,cat,dog\na.png,0.0,1.0\nb.png,1,0\n", "path,cat,dog\nb.png,1,0\n"),
       "dog cat / cat of cat|dog"},
      {"OneHotTruth",
       two_lists(".csv", "path,cat,dog\na.png,False,True\nb.png,True,False\n", "path,cat,dog\nb.png,1,0\n"),
       "dog cat / cat of cat|dog"},
      {"BlanksAfterCommas", two_lists(".csv", "path, label\na.png, x\nb.png , y\n", "path,label\nb.png,y\n"),
       "x y / y of x|y"},
      {"Bars", two_lists(".csv", "path|label\na.png|x\nb.png|y\n", "path|label\nb.png|y\n"), "x y / y of x|y"},
      {"ExcelsFirstLine", two_lists(".csv", "sep=;\npath;label\na.png;x\nb.png;y\n", "path;label\nb.png;y\n"),
       "x y / y of"},
      {"CommasAtTheEnd", two_lists(".csv", "path,label\na.png,x,\nb.png,y,,\n", "path,label,\nb.png,y,\n"),
       "x y / y of x|y"},
      {"PandasIndex",
       two_lists(".csv", ",path,cat,dog\n0,a.png,1,0\n1,b.png,0,1\n2,a.png,1,0\n",
                 ",path,cat,dog\n7,b.png,0,1\n8,a.png,1,0\n9,b.png,0,1\n"),
       "cat dog cat / dog cat dog of cat|dog"},
      {"NumbersOfRows", two_lists(".csv", "0,a.png,x\n1,b.png,y\n2,a.png,x\n", "0,b.png,y\n1,a.png,x\n2,b.png,y\n"),
       "x y x / y x y of x|y"},
      {"MxnetsLists",
       two_lists(".lst", "5\tx\ta.png\n2\ty\tb.png\n9\tx\ta.png\n", "3\ty\tb.png\n1\tx\ta.png\n2\ty\tb.png\n"),
       "x y x / y x y of x|y"},
      {"ColumnsOfPixels", two_lists(".csv", "label,pixel0,pixel1\n1,0,0\n", ""),
       "its columns hold pixels, not the paths of images"},
      {"PixelsWithoutAHeader", two_lists(".csv", "3" + pixels_of_a_row + "\n", ""),
       "np.save('x_train.npy', a[:, 1:785].reshape(-1, 28, 28)); np.save('y_train.npy', a[:, 0])"},
      {"PixelsInOneColumn", two_lists(".csv", "emotion,pixels,Usage\n1,70 80,Training\n", ""), "x['Usage'] == u"},
      {"Utf16", two_lists(".csv", std::string("\xFF\xFEp\0a\0", 6), ""), "it is UTF-16, not UTF-8 # convert it: iconv"},
      {"ATestListWithoutLabels",
       [](const TempFolder& at) {
         write_images(at, {"a.png", "b.png", "c.png"});
         at.write("train.csv", "path,label\na.png,x\nb.png,y\n");
         at.write("test.csv", "path\nc.png\n");
       },
       "where it has no labels, --val-fraction 0.1 holds a part of the training images out"},
      {"AColumnOfSplits",
       [](const TempFolder& at) {
         write_images(at, {"a.png", "b.png"});
         at.write("train.csv", "path,label,split\na.png,x,train\nb.png,y,val\n");
       },
       "its column 'split' names splits: write the rows of each into a list of its own"},
      {"SeveralHot", two_lists(".csv", "path,cat,dog\na.png,1,1\nb.png,1,0\n", "path,cat,dog\nb.png,1,0\n"),
       "columns 'cat' and 'dog' hold several labels per row, as 0 and 1"},
      {"Numbers", two_lists(".csv", "path,radius\na.png,1.5\nb.png,2\n", "path,radius\nb.png,2\n"),
       "column 'radius' holds numbers: --task regression"},
      {"WholeNumbers", two_lists(".csv", "path,radius\na.png,12\nb.png,37\n", "path,radius\nb.png,12\n"),
       "column 'radius' holds numbers: --task regression"},
      {"Lists", two_lists(".csv", "path,label\na.png,\"['a', 'b']\"\nb.png,['a']\n", "path,label\nb.png,['a']\n"),
       "column 'label' holds lists: --task multilabel"},
      {"Angles", two_lists(".csv", "path,yaw,pitch,roll\na.png,1,2,3\n", "path,yaw,pitch,roll\nb.png,1,2,3\n"),
       "--task head-pose"},
      {"ALabelThatIsTheIdOfAnotherImage",
       [](const TempFolder& at) {
         write_images(at, {"images/1.png", "images/2.png"});
         at.write("train.csv", "picture,kind\ngone.png,1\n2.png,2\n");
       },
       "the header has no column 'path'; it reads 'picture' and 'kind'"},
      {"TwoSpellings", two_lists(".csv", "path,label\na.png,x\n./a.png,y\n", "path,label\nb.png,y\n"),
       "train.csv:3: the same path stood earlier with another label"},
      {"LabelsBesideFlatFolders",
       [](const TempFolder& at) {
         write_images(at, {"train/1.jpg", "train/2.jpg", "val/3.jpg"});
         at.write("labels.csv", "id,breed\n1,pug\n2,boxer\n");
         at.write("val_labels.csv", "id,breed\n3,pug\n");
       },
       "pug boxer / pug of boxer|pug"},
      {"AnotherSplitIsNoPlaceToLook",
       [](const TempFolder& at) {
         write_images(at, {"train/1.jpg", "train/2.jpg", "val/1.jpg"});
         at.write("train.csv", "id,label\n1,x\n2,y\n");
         at.write("val.csv", "id,label\n1,x\n2,y\n");
       },
       "val: No such file or directory"},
  });
}

TEST(PublishedDataTest, WhatIsThereInsteadIsNamedWithTheNextStep) {
  const auto file = [](const std::string& name, const std::string& content = "x") {
    return [=](const TempFolder& at) { at.write(name, content); };
  };
  const auto cub = [](const TempFolder& at) {
    write_images(at, {"images/a/1.jpg", "images/b/2.jpg"});
    at.write("bounding_boxes.txt", "1 60.0 27.0 325.0 304.0\n");  // in pixels: not of YOLO
    at.write("image_class_labels.txt", "1 1\n2 2\n");
  };
  expect_all({
      {"Zip", file("photos.zip"), "it holds 1 zip archive (the first: photos.zip): unpack it: unzip -q DIR/photos.zip"},
      {"TarGz", file("cifar-10-binary.tar.gz"), "unpack it: tar xf DIR/cifar-10-binary.tar.gz"},
      {"Coco", file("annotations/instances_train2017.json", "{\"images\": [], \"annotations\": []}"),
       "holds annotations of COCO: boxes are not learned here"},
      {"Labelme", file("train/1.json", "{\"shapes\": []}"), "is an annotation of labelme"},
      {"NearName",
       [](const TempFolder& at) {
         write_images(at, {"tain/a/1.jpg", "tain/b/1.jpg", "other/a/1.jpg", "other/b/1.jpg"});
       },
       "did you mean --train-split tain?"},
      {"ShardsOfNumbers", file("0000.tar"), "it holds 1 archive whose names are numbers"},
      {"PackedShards", file("train-0000.tar.xz"), "archives must not be compressed: unxz DIR/*.xz"},
      {"Voc", file("Annotations/1.xml", "<annotation><object/></annotation>"), "is an annotation of Pascal VOC"},
      {"Cub", cub, "it holds 1 CUB list (the first: image_class_labels.txt): write its lists: (cd DIR && python3"},
      {"HuggingFace",
       [](const TempFolder& at) {
         write_images(at, {"train/1.png", "validation/2.png"});
         at.write("train/metadata.jsonl", "{\"file_name\": \"1.png\", \"label\": 1}\n");
         at.write("validation/metadata.jsonl", "{\"file_name\": \"2.png\", \"label\": 0}\n");
       },
       "train/ holds a Hugging Face list, metadata.jsonl: write it as CSV"},
      {"SmallImageNet", file("train_data_batch_1"), "it holds 1 batch of the small ImageNet"},
      {"AFolderTooHigh", file("data/photos/photos.zip"),
       "photos/ holds 1 zip archive (the first: photos.zip): unpack it"},
      {"Yolo", file("labels/train/1.txt", "0 0.5 0.5 0.1 0.1\n"), "is an annotation of YOLO"},
      {"Videos", file("clips/a.mp4"),
       "clips/ holds 1 video (the first: a.mp4): videos are learned from a folder per class (CLASS/*.mp4)"},
      {"Parquet", file("data/train-00000.parquet"), "data/ holds 1 Parquet file"},
      {"TfRecord", file("train.tfrecord-00000-of-00001"), "it holds 1 TFRecord file"},
      {"Lmdb", file("train/data.mdb"), "train/ holds 1 LMDB database"},
      {"ImagesAlone", file("a.jpg"), "1 image lies in it, but no folder per class"},
      {"FlatTrain", file("train/a.jpg"), "train/ holds 1 image and no folder per class"},
      {"WindowsZip", file("train\\a\\1.jpg"), "its names hold backslashes, which are folders of an archive of Windows"},
      {"CatsAndDogs",
       [](const TempFolder& at) {
         for (const char* const name : {"cat.0", "cat.1", "cat.2", "dog.0", "dog.1", "dog.2"}) {
           at.write(std::string("train/") + name + ".jpg", one_pixel());
         }
       },
       "their names begin with 'cat' and 'dog': where these are classes, move each into a folder of that name"},
      {"ClassesBelow",
       [](const TempFolder& at) {
         write_images(at, {"images/a/1.jpg", "images/b/1.jpg", "parts/x.jpg"});
       },
       "images/ holds 2 folders with images: where they are classes, --data-dir DIR/images --val-fraction 0.1"},
      {"Json", file("labels.json", "{}"),
       "it holds 1 JSON file (the first: labels.json): where it names the classes of images"},
      {"Excel", file("labels.xlsx"), "it holds 1 table of Excel (the first: labels.xlsx): save it as CSV"},
      {"AVideoPerClass",
       [](const TempFolder& at) {
         at.write("train/a/1.wmv", "x");
         at.write("train/b/1.wmv", "x");
       },
       "skipped files that are not images: 1 (the first: DIR/train/a/1.wmv)"},
      {"VideosOfClasses",
       [](const TempFolder& at) {
         at.write("train/a/1.wmv", "x");
         at.write("train/b/1.wmv", "x");
       },
       "train/a has 0 images (0 found in the classes before it) # it holds 1 video (the first: 1.wmv): train reads "
       "frames, a "
       "folder per video: for v in DIR/train/*/*.wmv; do mkdir -p \"${v%.*}\"; ffmpeg -i \"$v\""},
      {"RawFilesOfClasses",
       [](const TempFolder& at) {
         at.write("train/a/1.CR2", "x");
         at.write("train/b/1.CR2", "x");
       },
       "it holds 1 camera raw file (the first: 1.CR2): convert them to TIFF: dcraw_emu -T DIR/train/*/*.CR2"},
      {"CelebA",
       [](const TempFolder& at) {
         write_images(at, {"img_align_celeba/1.jpg"});
         at.write("list_attr_celeba.txt", "1\nBald Smiling\n1.jpg -1  1\n");
         at.write("list_eval_partition.txt", "1.jpg 0\n");
       },
       "it holds 1 CelebA list (the first: list_attr_celeba.txt): write it as lists of labels: (cd DIR && python3 -c"},
      {"CelebAInFolders",
       [](const TempFolder& at) {
         write_images(at, {"Img/img_align_celeba/1.jpg"});
         at.write("Anno/list_attr_celeba.txt", "1\nBald Smiling\n1.jpg -1  1\n");
         at.write("Eval/list_eval_partition.txt", "1.jpg 0\n");
       },
       "train --data-dir DIR --task multilabel"},
      {"OxfordFlowers",
       [](const TempFolder& at) {
         write_images(at, {"jpg/image_00001.jpg"});
         at.write("imagelabels.mat", "x");
       },
       "it holds 1 Oxford flower list (the first: imagelabels.mat): write its lists: (cd DIR && python3 -c"},
      {"Svhn", file("train_32x32.mat"),
       "it holds 1 SVHN file (the first: train_32x32.mat): write its arrays: (cd DIR &&"},
      {"Stl10", file("train_X.bin"),
       "it holds 1 STL-10 file (the first: train_X.bin): write its arrays: (cd DIR && python3"},
      {"Hdf4", file("train.hdf"),
       "cannot be read as HDF5: file signature not found # files of HDF4 end in .hdf, too: h4toh5"},
      {"EndingOfHdf5", file("train.he5"), "train.he5 cannot be read as HDF5"},
      {"AUrl", file("a.jpg"),
       "s3://bucket/photos is an address; data is read from this machine # nothing is downloaded: "
       "run aws s3 cp --recursive s3://bucket/photos data, then --data-dir FOLDER",
       [](config::DataOptions& options) { options.data_dir = "s3://bucket/photos"; }},
      {"AUrlOfAZip", file("a.jpg"), "run wget https://x.org/get/a.zip && unzip a.zip -d data, then --data-dir FOLDER",
       [](config::DataOptions& options) { options.data_dir = "https://x.org/get/a.zip"; }},
      {"ANameThatIsNoFolder", file("a.jpg"), "# nothing is downloaded: name a folder on this machine",
       [](config::DataOptions& options) { options.data_dir = "imagenet-of-someone"; }},
      {"APattern", file("a.jpg"), "# name the folder itself: its files are found by their names",
       [](config::DataOptions& options) { options.data_dir = "train-{000..009}.tar"; }},
      {"ItIsAZip", file("photos.zip"), "# unpack it: unzip -q",
       [](config::DataOptions& options) { options.data_dir = "photos.zip"; }},
  });
}

TEST(PublishedDataTest, ListsFindTheirImagesWhereArchivesAndSpreadsheetsLeaveThem) {
  const auto listed = [](std::vector<std::string> images, const std::string& list) {
    return [=](const TempFolder& at) {
      write_images(at, images);
      at.write("train.csv", list);
      at.write("val.csv", list);
    };
  };
  expect_all({
      {"NumbersThatLostTheirZeros", listed({"images/00001.jpg", "images/00012.jpg"}, "id,label\n1,a\n12,b\n"),
       "a b / a b of a|b"},
      {"ADotInFront",
       listed({"train/1.jpg", "train/2.jpg"}, "path,label\n./data/train/1.jpg,a\n./data/train/2.jpg,b\n"),
       "a b / a b of a|b"},
      {"FoldersInFolders",
       listed({"data/pictures/all/1.jpg", "data/pictures/all/2.jpg"}, "path,label\n1.jpg,a\n2.jpg,b\n"),
       "a b / a b of a|b"},
      {"AnArchiveInAFolderOfItsName", listed({"pics/pics/1.jpg", "pics/pics/2.jpg"}, "id,label\n1,a\n2,b\n"),
       "a b / a b of a|b"},
      {"CellsThatPandasLeftEmpty", listed({"1.jpg", "2.jpg"}, "path,label\n1.jpg,a\n2.jpg,NaN\n"),
       "the label is missing (it reads 'NaN': give a class of that name another one)"},
      {"FlagsWithEmptyCells", listed({"1.jpg", "2.jpg", "3.jpg"}, "path,a,b\n1.jpg,1.0,0\n2.jpg,1,nan\n3.jpg,TRUE,1\n"),
       "columns 'a' and 'b' hold several labels per row, as 0 and 1 # add --task multilabel"},
      {"OneColumnOfEachClassWithEmptyCells", listed({"1.jpg", "2.jpg"}, "path,a,b\n1.jpg,1,nan\n2.jpg,nan,1\n"),
       "a b / a b of a|b"},
      {"FlagsInWords", listed({"1.jpg", "2.jpg"}, "path,a,b\n1.jpg,yes,no\n2.jpg,Yes,YES\n"),
       "columns 'a' and 'b' hold several labels per row, as 0 and 1 # add --task multilabel"},
  });
}

TEST(PublishedDataTest, AListOfNoSplitTakesTrainingImagesAndNotThoseOfTheTestOfTheSameNames) {
  const TempFolder folder;
  write_images(folder, {"test/1.jpg", "test/2.jpg", "train/1.jpg", "train/2.jpg", "train/3.jpg"});
  folder.write("labels.csv", "id,label\n1,a\n2,b\n3,a\n");
  config::DataOptions options;
  options.data_dir = folder.path();
  options.val_split = config::kNoValidation;
  const auto train = open_datasets(options).train;
  ASSERT_EQ(train->size(), 3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(train->relative_name(i).rfind("train/", 0), 0u) << train->relative_name(i);
}

TEST(PublishedDataTest, NoOtherFileStandsForOneThatIsMissing) {
  const TempFolder folder;
  write_images(folder, {"1.jpg", "2.jpg", "extra/masks/3.jpg", "data/test/7.jpg", "data/train/7.jpg"});
  folder.write("train.csv", "path,label\n1.jpg,a\n2.jpg,b\n3.jpg,a\n");
  const auto read = [&] {
    config::DataOptions options;
    options.data_dir = folder.path();
    options.val_split = config::kNoValidation;
    return open_datasets(options);
  };
  EXPECT_NE(joined(read().notes).find("files of the manifest that are not there: 1"), std::string::npos);
  folder.write("train.csv", "path,label\n7.jpg,a\n");
  EXPECT_EQ(read().train->relative_name(0), "data/train/7.jpg");
  std::string deep;
  for (int i = 0; i < 9000; ++i) deep += "./";
  for (int i = 0; i < 9000; ++i) deep += "q/";
  folder.write("train.csv", "path,label\n1.jpg,a\n2.jpg,b\n" + deep + "x.jpg,b\n");
  EXPECT_NE(joined(read().notes).find("files of the manifest that are not there: 1"), std::string::npos);
}

TEST(PublishedDataTest, PartsAndSplitsAreNoClasses) {
  const auto parts = [](const TempFolder& at) { write_images(at, {"images_part_1/i1.jpg", "images_part_2/i2.jpg"}); };
  const auto with = [](config::DataOptions& options) { options.val_split = config::kNoValidation; };
  expect_all({
      {"PartsBesideTheirList",
       [parts](const TempFolder& at) {
         parts(at);
         write_images(at, {"images_part_1/i3.jpg"});
         at.write("metadata_of_images.csv", "image_id,dx\ni1,nv\ni2,mel\ni3,mel\n");
       },
       "DIR holds images_part_1 and images_part_2, whose images metadata_of_images.csv lists: they are parts and not "
       "classes",
       with},
      {"ClassesWithNumbersThatTheListHasToo",
       [](const TempFolder& at) {
         write_images(at, {"class_1/i1.jpg", "class_1/i3.jpg", "class_2/i2.jpg"});
         at.write("index.csv", "image_id,dx,sex\ni1,a,f\ni2,b,f\ni3,a,m\n");
       },
       "class_1 class_1 class_2 /", with},
      {"FlatSplitsOfLongerNames",
       [](const TempFolder& at) {
         write_images(at, {"test_set/1.jpg", "training_set/2.jpg"});
       },
       "--train-split training_set (and --val-split)", with},
      {"WordsThatBeginAsSplits",
       [](const TempFolder& at) {
         write_images(at, {"trainers/1.jpg", "valves/2.jpg"});
       },
       "trainers valves /", with},
      {"WithoutAListTheyAreClasses", parts, "images_part_1 images_part_2 /", with},
      {"SplitsOfOtherNames",
       [](const TempFolder& at) {
         write_images(at, {"data_256/a/1.jpg", "data_256/b/2.jpg", "val_256/3.jpg"});
       },
       "DIR holds data_256 and val_256, which are called like splits and not like classes", with},
  });
}

TEST(PublishedDataTest, WhatWasFoundOtherwiseIsSaid) {
  const TempFolder folder;
  write_images(folder, {"images/k1.jpg", "images/k2.jpg"});
  folder.write("train.csv", "id,breed\nk1,1\nk2,2\n");
  folder.write("val.csv", "id,breed\nk2,2\n");
  const std::string notes = notes_of(folder);
  EXPECT_NE(notes.find("train: labels are in 'breed'"), std::string::npos) << notes;
  EXPECT_NE(notes.find("train: images are in 'id'"), std::string::npos) << notes;
  EXPECT_NE(notes.find("train: images are in images/, with .jpg behind the name"), std::string::npos) << notes;
  EXPECT_NE(notes.find("classes without training images: 1 of 3 (the first: 0)"), std::string::npos) << notes;
  folder.write("train.csv", "path,class\nk1.jpg,1\nk2.jpg,2\n");
  folder.write("val.csv", "path,label\nk2.jpg,2\n");
  const std::string usual = notes_of(folder);
  EXPECT_NE(usual.find("train: labels are in 'class'"), std::string::npos) << usual;
  EXPECT_EQ(usual.find("val: labels are in"), std::string::npos) << usual;
  folder.write("train.csv", ",id,breed\n0,k1,Pug\n1,k2,pug \n2,k1,Pug\n");
  folder.write("val.csv", "id,breed\nk2,pug\n");
  const std::string others = notes_of(folder);
  EXPECT_NE(others.find("column '' counts the rows and is left out"), std::string::npos) << others;
  EXPECT_NE(others.find("classes 'Pug' and 'pug' differ in capitals or blanks alone"), std::string::npos) << others;
}

TEST(PublishedDataTest, LevelsOfFoldersAreNamedWhereTheSecondMayHoldTheClasses) {
  const auto note = [](const Names& images) {
    const TempFolder folder;
    write_images(folder, images);
    config::DataOptions options;
    options.data_dir = folder.path();
    options.val_fraction = 0.5;
    std::string text = joined(open_datasets(options).notes);
    for (size_t at = text.find(folder.path()); at != std::string::npos; at = text.find(folder.path())) {
      text.replace(at, folder.path().size(), "DIR");
    }
    return text;
  };
  const std::string same = note({"color/rot/1.jpg", "color/rust/2.jpg", "gray/rot/1.jpg", "gray/rust/2.jpg"});
  EXPECT_NE(
      same.find("the classes are 'color' and 'gray', and the folder of each holds 'rot' and 'rust': where these are "
                "the classes: --data-dir DIR/color --val-fraction 0.1"),
      std::string::npos)
      << same;
  const std::string others = note({"cat/siamese/1.jpg", "cat/persian/2.jpg", "dog/pug/1.jpg", "dog/boxer/2.jpg"});
  EXPECT_NE(others.find("the classes are 'cat' and 'dog'; their images lie in folders below"), std::string::npos)
      << others;
  for (const Names& images : {Names{"cat/1.jpg", "cat/indoors/2.jpg", "dog/a/1.jpg", "dog/b/2.jpg"},
                              Names{"cat/images/1.jpg", "cat/images/2.jpg", "dog/images/1.jpg", "dog/images/2.jpg"}}) {
    EXPECT_EQ(note(images).find("the classes are"), std::string::npos) << note(images);
  }
}

}  // namespace
}  // namespace stoker::data
