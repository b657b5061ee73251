package clickjoin.storage;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Commits on a local file system (scheme `file`): written beside its place, flushed, and given its name by link(2),
 * which never overwrites. Set it by spark.delta.logStore.file.impl=clickjoin.storage.LocalLogStore.
 */
public class LocalLogStore extends ExclusiveLogStore {
    public LocalLogStore(Configuration conf) {
        super(conf);
    }

    /** Spark writes checkpoints by itself: where it is killed, half of one must not lie under the final name. */
    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) throws IOException {
        return Boolean.TRUE;
    }

    @Override
    protected boolean createExclusively(Path path, byte[] bytes) throws IOException {
        File target = fileOf(path);
        File beside = writeBeside(target, bytes);
        boolean created = true;
        try {
            Files.createLink(target.toPath(), beside.toPath());
        } catch (FileAlreadyExistsException error) {
            created = false;
        } finally {
            beside.delete();
        }
        flush(target.getParentFile());  // also of another's commit: what is read next may rest on it
        return created;
    }

    @Override
    protected void confirm(Path path) throws IOException {
        File target = fileOf(path);
        flush(target);
        flush(target.getParentFile());
    }

    @Override
    protected void replace(Path path, byte[] bytes) throws IOException {
        File target = fileOf(path);
        File beside = writeBeside(target, bytes);
        try {
            Files.move(beside.toPath(), target.toPath(), StandardCopyOption.ATOMIC_MOVE);
        } finally {
            beside.delete();
        }
        flush(target.getParentFile());
    }

    @Override
    protected byte[] bytesOf(Path path) throws IOException {
        try {
            return Files.readAllBytes(fileOf(path).toPath());
        } catch (NoSuchFileException error) {
            return null;
        }
    }

    @Override
    protected void makeDurable(Path table, List<String> files) throws IOException {
        File root = fileOf(table);
        Set<File> folders = new LinkedHashSet<File>();
        for (Object name : files) {
            File file = new File((String) name);
            if (!file.isAbsolute()) {
                file = new File(root, (String) name);
                flush(file);
                for (File at = file.getParentFile(); at != null && !at.equals(root); at = at.getParentFile()) {
                    folders.add(at);
                }
            }
        }
        if (!files.isEmpty()) {
            folders.add(root);
        }
        for (Object folder : folders) {
            flush((File) folder);
        }
    }

    private static File fileOf(Path path) {
        return new File(path.toUri().getPath());
    }

    private static File writeBeside(File target, byte[] bytes) throws IOException {
        if (!target.getParentFile().isDirectory()) {
            throw new FileNotFoundException(target.getParent() + ": no such folder");
        }
        File beside = new File(target.getParentFile(), "." + target.getName() + "." + UUID.randomUUID() + ".tmp");
        boolean written = false;
        FileChannel channel = FileChannel.open(
            beside.toPath(), new OpenOption[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE});
        try {
            ByteBuffer left = ByteBuffer.wrap(bytes);
            while (left.hasRemaining()) {
                channel.write(left);
            }
            channel.force(true);
            written = true;
        } finally {
            channel.close();
            if (!written) {
                beside.delete();
            }
        }
        return beside;
    }

    private static void flush(File fileOrFolder) throws IOException {
        FileChannel channel = FileChannel.open(
            fileOrFolder.toPath(), new OpenOption[] {StandardOpenOption.READ});
        try {
            channel.force(true);
        } finally {
            channel.close();
        }
    }
}
