package clickjoin.storage;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Commits to an object store that honours `If-None-Match` (schemes `s3` and `s3a`): one PUT, which the store refuses
 * where the object is there. Set it by spark.delta.logStore.s3a.impl=clickjoin.storage.S3LogStore.
 *
 * An object is whole and durable once its PUT was answered, so nothing is flushed here.
 */
public class S3LogStore extends ExclusiveLogStore {
    private static final int TRIES = 5;
    private static final long PAUSE_MILLIS = 50;

    public S3LogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) throws IOException {
        return Boolean.FALSE;
    }

    @Override
    protected boolean createExclusively(Path path, byte[] bytes) throws IOException {
        for (int tries = 1; ; tries++) {
            try {
                putIfAbsent(path, bytes);
                return true;
            } catch (IOException error) {
                if (isRefusal(error)) {
                    return false;
                }
                if (!isConflict(error) || tries == TRIES) {
                    throw error;
                }
            }
            pause(tries * PAUSE_MILLIS);
        }
    }

    @Override
    protected void confirm(Path path) throws IOException {
    }

    @Override
    protected void replace(Path path, byte[] bytes) throws IOException {
        put(systemOf(path).create(path, true), bytes);
    }

    @Override
    protected byte[] bytesOf(Path path) throws IOException {
        InputStream in;
        try {
            in = systemOf(path).open(path);
        } catch (FileNotFoundException error) {
            return null;
        }
        try {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] chunk = new byte[1 << 16];
            for (int count = in.read(chunk); count >= 0; count = in.read(chunk)) {
                out.write(chunk, 0, count);
            }
            return out.toByteArray();
        } finally {
            in.close();
        }
    }

    @Override
    protected void makeDurable(Path table, List<String> files) throws IOException {
    }

    private void putIfAbsent(Path path, byte[] bytes) throws IOException {
        FSDataOutputStreamBuilder how = systemOf(path).createFile(path);
        how.overwrite(false);
        how.must("fs.option.create.conditional.overwrite", true);
        put((FSDataOutputStream) how.build(), bytes);
    }

    /** S3A sends the PUT at close, so the stream is not closed where writing to it failed. */
    private static void put(FSDataOutputStream out, byte[] bytes) throws IOException {
        out.write(bytes);
        out.close();
    }

    private FileSystem systemOf(Path path) throws IOException {
        return path.getFileSystem(initHadoopConf());
    }

    /** Whether the store says that the object is there. By name: hadoop-aws is fetched only where S3 is used. */
    private static boolean isRefusal(IOException error) {
        return error.getClass().getName().equals("org.apache.hadoop.fs.s3a.RemoteFileChangedException")
            || error instanceof org.apache.hadoop.fs.FileAlreadyExistsException;
    }

    /** Whether another PUT of the same name was under way, so that the store decided neither: S3 answers with 409. */
    private static boolean isConflict(IOException error) {
        String text = String.valueOf(error.getMessage());
        return text.indexOf("ConditionalRequestConflict") >= 0 || text.indexOf("Status Code: 409") >= 0;
    }

    private static void pause(long millis) throws IOException {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted");
        }
    }
}
