"""Class order of the development kit; ImageNet validation reader; files that label validation pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from counterfoil.errors import Unusable, UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.published.archive import ORIGINAL, Archive, ArchivePicture, collect_pictures
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import (
    PICTURE,
    LayoutFiles,
    match_layout,
    note_partial,
    require_pictures,
    skip_strays,
)
from counterfoil.types import Skipped

_PLACES = """
278 212 250 193 217 147 387 285 350 283 286 353 334 150 249 362 246 166 218 172 177 148 357 386 178 202 194 271 229
290 175 163 191 276 299 197 380 364 339 359 251 165 157 361 179 268 233 356 266 264 225 349 335 375 282 204 352 272
187 256 294 277 174 234 351 176 280 223 154 262 203 190 370 298 384 292 170 342 241 340 348 245 365 253 288 239 153
185 158 211 192 382 224 216 284 367 228 160 152 376 338 270 296 366 169 265 183 345 199 244 381 236 195 238 240 155
221 259 181 343 354 369 196 231 207 184 252 232 331 242 201 162 255 210 371 274 372 373 209 243 222 378 254 206 186
205 341 261 248 215 267 189 289 214 273 198 333 200 279 188 161 346 295 332 347 379 344 260 388 180 230 257 151 281
377 208 247 363 258 164 168 358 336 227 368 355 237 330 171 291 219 213 149 385 337 220 263 156 383 159 287 275 374
173 269 293 167 226 297 182 235 360 105 101 102 104 103 106 763 879 780 805 401 310 327 117 579 620 949 404 895 405
417 812 554 576 814 625 472 914 484 871 510 628 724 403 833 913 586 847 657 450 537 444 671 565 705 428 791 670 561
547 820 408 407 436 468 511 609 627 656 661 751 817 573 575 665 803 555 569 717 864 867 675 734 757 829 802 866 660
870 880 603 612 690 431 516 520 564 453 495 648 493 846 553 703 423 857 559 765 831 861 526 736 532 548 894 948 950
951 952 953 954 955 956 957 988 989 998 984 987 990 687 881 494 541 577 641 642 822 420 486 889 594 402 546 513 566
875 593 684 699 432 683 776 558 985 986 972 979 970 980 976 977 973 975 978 974 596 499 623 726 740 621 587 512 473
731 784 792 730 491 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
96 97 98 99 100 127 128 129 130 132 131 133 134 135 137 138 139 140 141 142 143 136 144 145 146 2 3 4 5 6 389 391 0 1
390 392 393 396 397 394 395 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 51 49 50 52 53 54 55 56 57 58 59 60 61 62
63 64 65 66 67 68 25 26 27 28 29 30 31 32 902 908 696 589 691 801 632 650 782 673 545 686 828 811 827 583 426 769 685
778 409 530 892 604 835 704 826 531 823 845 635 447 745 837 633 755 456 471 413 764 744 508 878 517 626 398 480 798
527 590 681 916 595 856 742 800 886 786 613 844 600 479 694 723 739 571 476 843 758 753 746 592 836 714 475 807 761
535 464 584 616 507 695 677 772 783 676 785 795 470 607 818 862 678 718 872 645 674 815 69 70 71 72 73 74 75 76 77 78
79 126 118 119 120 121 122 123 124 125 300 301 302 303 304 305 306 307 308 309 311 312 313 314 315 316 317 318 319 320
321 322 323 324 325 326 107 108 109 110 111 112 113 114 115 116 328 329 606 550 651 544 766 859 891 882 534 760 897
521 567 909 469 505 849 813 406 873 706 821 839 888 425 580 698 663 624 410 449 497 668 832 727 762 498 598 634 506
682 863 483 743 582 415 424 454 467 509 788 860 865 562 500 915 536 458 649 421 460 525 489 716 912 825 581 799 877
672 781 599 729 708 437 935 945 936 937 938 939 940 941 942 943 944 946 947 794 608 478 591 774 412 771 923 679 522
568 855 697 770 503 492 640 662 876 868 416 931 741 614 926 901 615 921 816 796 440 518 455 858 643 638 712 560 433
850 597 737 713 887 918 574 927 834 900 552 501 966 542 787 496 601 922 819 452 962 429 551 777 838 441 996 924 619
911 958 457 636 899 463 533 809 969 666 869 693 488 840 659 964 907 789 465 540 446 474 841 738 448 588 722 709 707
925 411 747 414 982 439 710 462 669 399 667 735 523 732 810 968 752 920 749 754 961 524 652 629 793 664 688 658 459
930 883 653 768 700 995 549 655 515 874 711 435 934 991 466 721 999 481 477 618 994 631 585 400 538 519 903 965 720
490 854 905 427 896 418 430 434 514 578 904 992 487 680 422 637 617 556 654 692 646 733 602 808 715 756 893 482 917
719 919 442 563 906 890 689 775 748 451 443 701 797 851 842 647 967 963 461 790 910 773 960 981 572 993 830 898 528
804 610 779 611 728 759 529 419 929 885 852 570 539 630 928 932 750 639 848 502 605 997 983 725 644 445 806 485 622
853 884 438 971 933 702 557 504 767 824 959 543
"""
INDICES = tuple(map(int, _PLACES.split()))  # of the kit's number 1, 2 and so on, the place among the sorted WordNet ids


_FIRST = (65, 970, 230, 809, 516, 57, 334, 415, 674, 332)  # indices of ILSVRC2012_val_00000001 and the nine after it
_NAME = re.compile(r"ILSVRC2012_val_(?P<number>\d{8})")
_WNID = re.compile(r"n\d{8}")
_NUMBERINGS: dict[str, Callable[[int], int]] = {  # from a file's number to the index among sorted WordNet ids
    "indices 0 to 999 of the sorted WordNet ids": lambda number: number,
    "places 1 to 1000 of the sorted WordNet ids": lambda number: number - 1,
    "ILSVRC2012_ID of the development kit, which has an order of its own": lambda number: INDICES[number - 1],
}


class ValidationLabels(NamedTuple):
    """What a file says: WordNet ids by the pictures' stems, and how its numbers were read."""

    ids: Mapping[str, str]
    counted: str = ""  # empty where the file names WordNet ids


def read_labels(path: str, text: str) -> ValidationLabels:
    """The labels of "NAME 65", "NAME,n01751748 111 ...", or of one id or number a line; none of another file."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(_WNID.fullmatch(line) or re.fullmatch(r"[0-9]{1,4}", line) for line in lines):
        _refuse_other_order(path, lines)
        return _resolve_labels(path, dict(enumerate(lines, 1)))
    told: dict[int, str] = {}
    for line in lines:
        name, *rest = re.split(r"[\s,]+", line)
        if rest and (match := _NAME.search(name)) and re.fullmatch(r"n\d{8}|[0-9]{1,4}", rest[0]):
            told[int(match["number"])] = rest[0]
    return _resolve_labels(path, told)


def _refuse_other_order(path: str, lines: Sequence[str]) -> None:
    """Ids without names are labels only where the first pictures' stand first: lists of classes look the same."""
    first = [imagenet1k().labels[index] for index in _FIRST]
    for number, (line, known) in enumerate(zip(lines, first, strict=False), 1):
        if not line.isdecimal() and line != known:
            raise UserError(
                f"expected the WordNet id of every validation picture in order in {path}, where"
                f" {_label_file_stem(number)} is {known}; got {line}: write the pictures' names before their ids"
            )


def _resolve_labels(path: str, told: Mapping[int, str]) -> ValidationLabels:
    known = imagenet1k()
    named = {number: text for number, text in told.items() if text in known}
    counted = {number: int(text) for number, text in told.items() if text.isdecimal()}
    if not counted:
        return ValidationLabels({_label_file_stem(number): text for number, text in named.items()})
    way = _detect_numbering(path, counted)
    index = _NUMBERINGS[way]
    return ValidationLabels(
        {_label_file_stem(number): known.labels[index(value)] for number, value in counted.items()}, way
    )


def _detect_numbering(path: str, counted: Mapping[int, int]) -> str:
    """Which way of counting gives the first pictures the classes that they have; where none tells, nobody guesses."""
    first = {number: counted[number] for number in range(1, len(_FIRST) + 1) if number in counted}
    ways = [way for way in _NUMBERINGS if _possible(way, counted) and _fits(way, first)]
    if len(ways) == 1:
        return ways[0]
    shown = ", ".join(f"{_label_file_stem(number)} {value}" for number, value in list(first.items())[:3])
    numbers = f"numbers from {min(counted.values())} to {max(counted.values())} and none of the first ten pictures"
    raise UserError(
        f"expected labels in {path} that count as {'; or as '.join(_NUMBERINGS)}, where"
        f" {_label_file_stem(1)} is 65, 66 or 490; got {shown or numbers}: use WordNet ids instead"
    )


def _possible(way: str, counted: Mapping[int, int]) -> bool:
    low = 0 if way.startswith("indices 0") else 1
    return low <= min(counted.values()) and max(counted.values()) < low + len(INDICES)


def _fits(way: str, first: Mapping[int, int]) -> bool:
    return all(_NUMBERINGS[way](value) == _FIRST[number - 1] for number, value in first.items())


def _label_file_stem(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


NAME = "imagenet-val"
EXPECTED = "1,000 class folders by WordNet id, or ILSVRC2012_val_<number>.JPEG beside a file of labels"
PICTURES = 50_000
_IN_FOLDERS = r"(?P<wnid>n\d{8})/"
_VALIDATION = r"ILSVRC2012_val_\d{8}\.(?i:jpe?g|png)"
_LABEL_FILE = r"[^/]+\.(?:txt|csv)"
_KIT = r"(?:.*/)?ILSVRC2012_devkit_[^/]+/.*"  # the development kit, whose archive may lie beside the pictures'
_LABEL_BYTES = 100_000_000


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    return any(match_layout(tree, folders, _VALIDATION).places for folders in (_IN_FOLDERS, ""))


def read(tree: Tree) -> Archive:
    """The pictures with the labels of their folders or of the file."""
    for names in (_VALIDATION, PICTURE):  # by name first: train may lie beside val
        findings = match_layout(tree, _IN_FOLDERS, names)
        if findings.places:
            return _read_folders(tree, findings)
    findings = match_layout(tree, "", _VALIDATION, beside=f"{_LABEL_FILE}|{_KIT}")
    require_pictures(findings.places, NAME, EXPECTED, tree)
    return _read_flat(tree, findings)


def _read_folders(tree: Tree, findings: LayoutFiles) -> Archive:
    known = imagenet1k()
    other = sorted(wnid for wnid in findings.folders("wnid") if wnid not in known)
    if other:
        raise UserError(f"expected the 1,000 classes of ImageNet at '{tree.where}', got a folder {other[0]}")
    found = [ArchivePicture(place.at, place.name, place.parts["wnid"], ORIGINAL) for place in findings.places]
    if len({item.sample for item in found}) < len(found):
        found = [item._replace(sample=f"{item.label}/{item.sample}") for item in found]
    notes = note_partial("class folders", len(findings.folders("wnid")), len(known.labels))
    return _archive(tree, found, findings, notes)


def _read_flat(tree: Tree, findings: LayoutFiles) -> Archive:
    names = [place.name for place in findings.places]
    file, labels = _find_labels(tree, findings.root, names)
    found = [
        ArchivePicture(place.at, place.name, labels.ids[stem], ORIGINAL)
        for place in findings.places
        if (stem := _stem(place.name)) in labels.ids
    ]
    unlabelled = [
        Skipped(name, "source", "", "the picture has no label in the file")
        for name in names
        if _stem(name) not in labels.ids
    ]
    notes = [f"The numbers of {file} were read as {labels.counted}."] if labels.counted else []
    return _archive(tree, found, findings, notes, unlabelled)


def _archive(
    tree: Tree, found: list[ArchivePicture], findings: LayoutFiles, notes: list[str], skipped: Sequence[Skipped] = ()
) -> Archive:
    return Archive(
        name=NAME, tree=tree, pictures=collect_pictures(NAME, tree.sizes.path, found), space=imagenet1k(),
        skipped=(*skipped, *skip_strays(NAME, findings.strays)),
        notes=(*note_partial("pictures", len(found), PICTURES), *notes),
    )  # fmt: skip


def _find_labels(tree: Tree, root: str, names: Sequence[str]) -> tuple[str, ValidationLabels]:
    """The file of labels that speaks of most of these pictures, by its name: in the archive, else beside it."""
    inside = [path for path in tree.sizes if re.fullmatch(rf"{re.escape(root)}{_LABEL_FILE}|{_KIT}\.txt", path)]
    texts = {path: _read_text(tree, path) for path in inside}
    beside = tree.where.parent if tree.where.is_file() else tree.where / root
    for path in [*sorted(beside.glob("*.txt")), *sorted(beside.glob("*.csv"))]:
        if not path.is_file() or path.stat().st_size > _LABEL_BYTES:  # other people's files may lie there too
            continue
        texts.setdefault(path.name, _read_beside(path))
    stems = {_stem(name) for name in names}
    known: list[tuple[str, ValidationLabels]] = []
    refused: list[UserError] = []
    for called, text in texts.items():
        try:
            known.append((called, read_labels(called, text)))
        except UserError as error:  # other people's numbers, perhaps: another file may hold the labels
            refused.append(error)
    best = max(known, key=lambda file: len(stems & file[1].ids.keys()), default=None)
    if best is not None and stems & best[1].ids.keys():
        return best
    if refused:
        raise refused[0]
    raise UserError(
        f"expected a file of labels beside the {len(names):,} pictures at '{tree.where}', with lines such as"
        f" 'ILSVRC2012_val_00000001.JPEG 65' or '... n01751748', or one WordNet id a line;"
        f" found {', '.join(texts) or 'none'}"
    )


def _read_text(tree: Tree, path: str) -> str:
    """A text, or nothing where it cannot be read: another file may hold the labels."""
    try:
        return tree.read(path).decode("utf-8-sig", "replace")
    except Unusable:
        return ""


def _read_beside(path: Path) -> str:
    """The same of a file beside the archive."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _stem(name: str) -> str:
    return name.partition(".")[0]
