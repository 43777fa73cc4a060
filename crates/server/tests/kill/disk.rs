//! A disk whose power can be cut: ext4 on an image file, which is cloned atomically.
//!
//! The image file is in a file system of its own (XFS) that can clone a file by reference. A clone is
//! atomic, and it has exactly what ext4 has written to its device so far, without what is only in the
//! page cache, in an uncommitted journal transaction or in a folder that was not synced. Mounting the
//! clone shows what a power cut would have left, and ext4 recovers its journal.
//!
//! Everything is mounted in a mount namespace of the calling thread and those that it starts: when the
//! last of them and of their processes ends, however it does, the kernel unmounts everything and
//! releases the loop devices.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Both are sparse. The outer one has space for what two images do not share.
const OUTER_BYTES: u64 = 6 << 30;
const DISK_BYTES: u64 = 2 << 30;
const UNMOUNT_MAX: Duration = Duration::from_secs(5);

pub struct Disk {
    folder: TempDir,
    /// How many images there were before the current one.
    cuts: u64,
    mounted: Vec<PathBuf>,
}

impl Disk {
    /// Fails if this machine does not allow it.
    pub fn new() -> io::Result<Self> {
        own_mounts()?;
        let folder = tempfile::tempdir()?;
        let mut disk = Self { folder, cuts: 0, mounted: Vec::new() };
        for folder in [disk.outer(), disk.root()] {
            fs::create_dir(folder)?;
        }
        let image = disk.folder.path().join("outer.img");
        File::create_new(&image)?.set_len(OUTER_BYTES)?;
        succeed(Command::new("mkfs.xfs").args(["-q", "-m", "reflink=1"]).arg(&image))?;
        disk.mount("loop,discard", &image, disk.outer())?;
        File::create_new(disk.image())?.set_len(DISK_BYTES)?;
        // Everything is written now, so that the kernel does nothing of it during the test.
        let options = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        succeed(Command::new("mkfs.ext4").args(options).arg(disk.image()))?;
        disk.mount("loop", &disk.image(), disk.root())?;
        Ok(disk)
    }

    /// Where the disk is mounted.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// A folder that no power cut affects.
    pub fn elsewhere(&self) -> &Path {
        self.folder.path()
    }

    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    fn outer(&self) -> PathBuf {
        self.folder.path().join("outer")
    }

    fn image(&self) -> PathBuf {
        self.outer().join(format!("disk-{}.img", self.cuts))
    }

    /// Cuts the power: the disk keeps its present contents. `before` is called at the last moment.
    pub fn cut(&mut self, before: impl FnOnce()) -> Cut {
        let old = self.image();
        let source = File::open(&old).expect("the image is there");
        self.cuts += 1;
        let clone = File::create_new(self.image()).expect("created");
        before();
        rustix::fs::ioctl_ficlone(&clone, &source).expect("cloned");
        Cut { old }
    }

    /// Restores the power. No file of the old disk may be open any more.
    pub fn restore(&mut self, cut: Cut) {
        self.unmount().expect("unmounted");
        fs::remove_file(cut.old).expect("removed");
        let (image, root) = (self.image(), self.root());
        self.mount("loop", &image, root).expect("the journal is recovered");
    }

    fn mount(&mut self, options: &str, image: &Path, at: PathBuf) -> io::Result<()> {
        succeed(Command::new("mount").args(["-o", options]).arg(image).arg(&at))?;
        self.mounted.push(at.clone());
        // The clone has everything given to the device, whether the image file is synced or not, so
        // the device need not sync. If that cannot be configured, it only takes longer.
        let device = fs::metadata(&at)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let setting = format!("/sys/dev/block/{major}:{minor}/queue/write_cache");
        let _ = fs::write(setting, "write through");
        Ok(())
    }

    fn unmount(&mut self) -> io::Result<()> {
        let Some(at) = self.mounted.pop() else { return Ok(()) };
        let begun = Instant::now();
        loop {
            // A loop device may still be releasing its file.
            match succeed(Command::new("umount").arg(&at)) {
                Err(_) if begun.elapsed() < UNMOUNT_MAX => thread::sleep(UNMOUNT_MAX / 100),
                ended => return ended,
            }
        }
    }
}

/// A power cut after which nothing was mounted yet.
#[must_use]
pub struct Cut {
    old: PathBuf,
}

impl Drop for Disk {
    fn drop(&mut self) {
        while !self.mounted.is_empty() {
            if let Err(why) = self.unmount() {
                println!("left to the kernel: {why}");
            }
        }
    }
}

/// Gives this thread and its children their own mounts from now on.
#[allow(unsafe_code, reason = "tests only: the library has no safe form of it")]
fn own_mounts() -> io::Result<()> {
    // SAFETY: no memory is passed, and of what threads share only the current folder and the mask
    // of permissions are no longer shared; nobody sets them.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        let why = io::Error::last_os_error();
        return Err(io::Error::new(why.kind(), format!("no mount namespace can be had: {why}")));
    }
    succeed(Command::new("mount").args(["--make-rprivate", "/"]))
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let why = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(why) => why.to_string(),
    };
    Err(io::Error::other(format!("{command:?}: {why}")))
}
